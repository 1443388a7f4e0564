"""The keys that supervisors and dashboards of other systems know."""

OF_A_SCHEDULE = [
    *("schedule", "coordination", "scheduler_backend", "replica_id", "current_leader", "last_tick", "last_fired_at"),
    *("status", "total_runs", "total_failures", "next_run_at", "paused"),
]
OF_A_TASK = ["queued", "in_flight", "total_successes", "total_failures", "dead_letters", "last_error"]
