"""Delegation tokens over plaintext, where nobody may ask for them; tests/sasl/test_same_tokens.py
compares what is answered to who has logged in."""

from tests.differential.registry import script

ALICE = {"principal_type": "User", "principal_name": "alice"}


@script("CreateDelegationToken")
def create_delegation_token(s):
    s.ask("own", renewers=[], max_lifetime=-1)
    s.ask("of another", renewers=[ALICE], max_lifetime=1000, owner_principal_type="User",
          owner_principal_name="alice")  # fmt: skip
    s.ask("of no user", renewers=[ALICE | {"principal_type": "Group"}], max_lifetime=0,
          owner_principal_type="Group", owner_principal_name="g")  # fmt: skip


@script("RenewDelegationToken")
def renew_delegation_token(s):
    s.ask("no such", hmac=b"x", renew_period=-1)


@script("ExpireDelegationToken")
def expire_delegation_token(s):
    s.ask("no such", hmac=b"x", expiry_time_period=-1)


@script("DescribeDelegationToken")
def describe_delegation_token(s):
    s.ask("all", owners=None)
    s.ask("none", owners=[])
    s.ask("of one", owners=[ALICE])
