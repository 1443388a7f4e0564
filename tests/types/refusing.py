"""What a type checker must refuse: each ignored line has to be an error, for mypy and for pyright."""

# One comment serves both: mypy warns of an ignore that is not needed, and so does pyright with this.
# pyright: reportUnnecessaryTypeIgnoreComment=true

from drumline import Context, Drumline

drum = Drumline("memory://")


@drum.task
async def greet(user_id: int, name: str = "x") -> str:
    return name * user_id


@drum.task(queue="mail")
def count(ctx: Context, user_id: int) -> int:
    return ctx.attempt + user_id


async def wrong_arguments() -> None:
    await greet.enqueue("1")  # type: ignore[arg-type]
    await greet.enqueue(user_id="1")  # type: ignore[arg-type]
    await greet.enqueue()  # type: ignore[call-arg]
    await greet.enqueue(1, nmae="y")  # type: ignore[call-arg]
    await greet("1")  # type: ignore[arg-type]
    greet.enqueue_sync("1")  # type: ignore[arg-type]
    greet.call("1")  # type: ignore[arg-type]


async def the_context_is_given_and_not_sent(ctx: Context) -> None:
    await count.enqueue(ctx, 1)  # type: ignore[call-arg, arg-type]
    await count.enqueue(ctx=ctx, user_id=1)  # type: ignore[call-arg]
    count(ctx, 1)  # type: ignore[call-arg, arg-type]


async def wrong_results() -> None:
    text: int = await (await greet.enqueue(1)).wait()  # type: ignore[assignment]
    del text


async def wrong_arguments_after_using() -> None:
    await greet.using(delay=1).enqueue("1")  # type: ignore[arg-type]


def wrong_options_of_a_call() -> None:
    greet.using(bad_option=1)  # type: ignore[call-arg]
    greet.using(priority="high")  # type: ignore[arg-type]
    greet.using(on_conflict="shrug")  # type: ignore[arg-type]


def wrong_options_of_a_task() -> None:
    drum.task(bad_option=1)  # type: ignore[call-overload]
    drum.task(max_attempts="six")  # type: ignore[call-overload]
    drum.task(executor="fibre")  # type: ignore[call-overload]
    drum.stub("encode", bad_option=1)  # type: ignore[call-arg]
