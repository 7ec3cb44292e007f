"""UnregisterBroker, of brokers that there are not."""

from tests.differential.registry import script


@script("UnregisterBroker")
def unregister_broker(s):
    for number in (99, -1):
        s.ask(f"unknown {number}", broker_id=number)
