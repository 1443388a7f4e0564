"""The dashboard: pages that show the fleet and let people act, made on the server, alive by the event stream."""
