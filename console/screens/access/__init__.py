"""Views of who may come in and do what: users, ACLs, a right, the audit, certificates."""
