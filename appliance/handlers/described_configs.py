"""Settings as DescribeConfigs and CreateTopics show them, as `metadata.effective` explains them."""

from collections.abc import Mapping

from appliance.handlers.admin import AdminContext, Values
from appliance.metadata import effective
from appliance.metadata.effective import Explained


def new_topic(context: AdminContext, overrides: Mapping[str, str]) -> list[Values]:
    """The settings of a topic that has these overrides (CreateTopics 5 and later)."""
    situation = context.situation
    explained = effective.explain_topic(situation.image, situation.config, overrides)
    return [
        {
            "name": one.name,
            "value": None if one.sensitive else one.value,
            "read_only": one.read_only,
            "config_source": one.source,
            "is_sensitive": one.sensitive,
        }
        for one in explained
    ]


def described(one: Explained, *, synonyms: bool, documentation: bool) -> Values:
    """One setting in DescribeConfigs; the value of a sensitive one is null."""
    shown = one.synonyms if synonyms else ()
    return {
        "name": one.name,
        "value": None if one.sensitive else one.value,
        "read_only": one.read_only,
        "is_default": one.source == effective.DEFAULT,
        "config_source": one.source,
        "is_sensitive": one.sensitive,
        "synonyms": [
            {"name": name, "value": None if one.sensitive else value, "source": source}
            for name, value, source in shown
        ],
        "config_type": one.type,
        "documentation": one.doc if documentation else None,
    }
