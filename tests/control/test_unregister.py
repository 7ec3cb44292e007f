"""The only broker of a cluster is unregistered by mistake."""

from test_control_shell import Appliance, create, new

from appliance.base import errors


def test_who_is_alone_registers_again_and_leads_again(tmp_path):
    one = Appliance(tmp_path)
    try:
        create(one, new("t", 3))
        before = one.followed().image.brokers[1].epoch
        assert one.ask(64, 0, broker_id=1).error_code == errors.NONE
        one.answers()
        image = one.followed().image
        assert not image.brokers[1].fenced and image.brokers[1].epoch > before
        assert [each.leader for each in image.topics_by_name["t"].partitions] == [1] * 3
        assert one.ask(64, 0, broker_id=7).error_code == errors.BROKER_ID_NOT_REGISTERED
    finally:
        one.close()
