"""Every API that control answers, by key."""

from importlib import import_module
from typing import Final

from appliance.handlers.admin import Api

_MODULES: Final = (
    "k19_create_topics",
    "k20_delete_topics",
    "k22_init_producer_id",
    "k29_describe_acls",
    "k30_create_acls",
    "k31_delete_acls",
    "k32_describe_configs",
    "k33_alter_configs",
    "k35_describe_log_dirs",
    "k37_create_partitions",
    "k43_elect_leaders",
    "k44_incremental_alter_configs",
    "k45_alter_partition_reassignments",
    "k46_list_partition_reassignments",
    "k48_describe_client_quotas",
    "k49_alter_client_quotas",
    "k50_describe_user_scram_credentials",
    "k51_alter_user_scram_credentials",
    "k55_describe_quorum",
    "k56_alter_partition",
    "k57_update_features",
    "k62_broker_registration",
    "k63_broker_heartbeat",
    "k64_unregister_broker",
    "k67_allocate_producer_ids",
    "k70_controller_registration",
    "k73_assign_replicas_to_dirs",
    "k74_list_config_resources",
    "k80_add_raft_voter",
    "k81_remove_raft_voter",
    "k82_update_raft_voter",
)


def _api(name: str) -> Api:
    api = import_module(f"appliance.handlers.{name}").API
    assert isinstance(api, Api), name
    return api


APIS: Final[dict[int, Api]] = {api.key: api for api in map(_api, _MODULES)}
