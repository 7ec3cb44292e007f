"""The settings of TLS, SASL and delegation tokens, as Apache Kafka 4.3 has them.

A secret is of type PASSWORD: it is never shown and never logged.
"""

from typing import Final

from appliance.config.setting import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    PER_BROKER,
    SHORT,
    STRING,
    Setting,
)

_NO_OAUTH: Final = "nodes and this broker log in nowhere with a token"
_NO_KERBEROS: Final = "Kerberos (GSSAPI) is not served"
_NO_TOKENS: Final = "delegation tokens are not served yet"
_NO_CLASSES: Final = "the mechanisms are Penstock's own, there is no JVM"
_OF_A_LISTENER: Final = "a login is one listener's: listener.name.NAME.MECHANISM.sasl.jaas.config, NAME and MECHANISM in lower case"
_OPENSSL: Final = "TLS is OpenSSL's, there is no JVM"
_FORM: Final = "the form is seen in the file: PEM or PKCS12, which keytool writes since JDK 9; what is of the old form JKS is refused with the command that converts it"
_VERSIONS: Final = (
    "what is taken is said by ssl.enabled.protocols, as for listeners of Apache Kafka"
)
_BUILDER: Final = "principals are made as by Apache Kafka's own builder"

SECURITY: Final = (
    Setting("authorizer.class.name", STRING, "", "What decides who may do what; \"\": nobody does, and everybody may do everything. org.apache.kafka.metadata.authorizer.StandardAuthorizer: ACLs."),
    Setting("super.users", STRING, "", "Who may do everything, as TYPE:NAME with semicolons between them; read by the authorizer."),
    Setting("penstock.node.principals", STRING, "", "Principals that are nodes of the cluster, as TYPE:NAME with semicolons between them, known by a certificate on a listener with the protocol SSL or by a login on a SASL listener between nodes: they may do everything, and without an authorizer nobody else may act as a node. Empty: whoever may do CLUSTER_ACTION acts as a node; without an authorizer, where nodes log in, the user that this node logs in as."),
    Setting("allow.everyone.if.no.acl.found", BOOLEAN, False, "Whether a thing without ACLs is open to all; read by the authorizer."),
    Setting("sasl.enabled.mechanisms", LIST, ("GSSAPI",), "The SASL mechanisms that listeners of clients offer who log in (SASL_PLAINTEXT, SASL_SSL): PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER.", mode=PER_BROKER),
    Setting("sasl.mechanism.inter.broker.protocol", STRING, "GSSAPI", "The SASL mechanism by which brokers log in at brokers, where they reach one another by a SASL listener: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512.", mode=PER_BROKER),
    Setting("sasl.jaas.config", PASSWORD, None, "The login of a SASL listener.", mode=PER_BROKER, inert=_OF_A_LISTENER),
    Setting("security.inter.broker.protocol", STRING, "PLAINTEXT", "The protocol by which brokers reach one another (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL), where inter.broker.listener.name does not name a listener."),
    Setting("ssl.client.auth", STRING, "none", "Whether clients must show a certificate: none, requested (who shows none is ANONYMOUS), required.", choices=("required", "requested", "none"), mode=PER_BROKER),
    Setting("ssl.keystore.location", STRING, None, "The file with a listener's private key and its certificate chain: PEM or PKCS12.", mode=PER_BROKER),
    Setting("ssl.keystore.password", PASSWORD, None, "The password of the key store, where it is PKCS12.", mode=PER_BROKER),
    Setting("ssl.key.password", PASSWORD, None, "The password of the private key, where it is encrypted PEM.", mode=PER_BROKER),
    Setting("penstock.ssl.key.location", STRING, None, "File of the private key as PEM, when the certificate file does not contain it (certbot: privkey.pem beside fullchain.pem).", mode=PER_BROKER),
    Setting("ssl.truststore.location", STRING, None, "The file with the certificates of authorities that clients' certificates come from: PEM or PKCS12.", mode=PER_BROKER),
    Setting("ssl.truststore.password", PASSWORD, None, "The password of the trust store, where it is PKCS12.", mode=PER_BROKER),
    Setting("connection.failed.authentication.delay.ms", INT, 100, "How long the answer to a failed login is held back, in ms.", low=0),
    Setting("connections.max.reauth.ms", LONG, 0, "How long a login holds, in ms: a client logs in again before (KIP-368), or is hung up on; 0 for ever."),
    Setting("principal.builder.class", CLASS, "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", "What makes a principal out of a login.", mode=PER_BROKER, inert=_BUILDER),
    Setting("security.providers", STRING, None, "Security providers of the JVM.", inert=_OPENSSL),
    Setting("delegation.token.secret.key", PASSWORD, None, "The secret that delegation tokens are signed with.", inert=_NO_TOKENS),
    Setting("delegation.token.max.lifetime.ms", LONG, 604_800_000, "Longest life of a delegation token with its renewals, in ms.", low=1, inert=_NO_TOKENS),
    Setting("delegation.token.expiry.time.ms", LONG, 86_400_000, "Life of a delegation token without renewal, in ms.", low=1, inert=_NO_TOKENS),
    Setting("delegation.token.expiry.check.interval.ms", LONG, 3_600_000, "How often expired delegation tokens are looked for, in ms.", low=1, inert=_NO_TOKENS),
    Setting("sasl.mechanism.controller.protocol", STRING, "GSSAPI", "The SASL mechanism by which nodes log in at controllers, where the first of controller.listener.names is a SASL listener: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512."),
    Setting("sasl.server.max.receive.size", INT, 524288, "Largest request of a client that has not logged in, in bytes."),
    Setting("sasl.client.callback.handler.class", CLASS, None, "Callback handler of SASL clients.", inert=_NO_CLASSES),
    Setting("sasl.server.callback.handler.class", CLASS, None, "Callback handler of the SASL server.", inert=_NO_CLASSES),
    Setting("sasl.login.callback.handler.class", CLASS, None, "Callback handler of logins.", inert=_NO_CLASSES),
    Setting("sasl.login.class", CLASS, None, "Class of logins.", inert=_NO_CLASSES),
    Setting("sasl.login.connect.timeout.ms", INT, None, "Wait for a connection to the identity provider, in ms.", inert=_NO_OAUTH),
    Setting("sasl.login.read.timeout.ms", INT, None, "Wait for an answer of the identity provider, in ms.", inert=_NO_OAUTH),
    Setting("sasl.login.retry.backoff.ms", LONG, 100, "First wait before a login is tried again, in ms.", inert=_NO_OAUTH),
    Setting("sasl.login.retry.backoff.max.ms", LONG, 10000, "Longest wait before a login is tried again, in ms.", inert=_NO_OAUTH),
    Setting("sasl.login.refresh.buffer.seconds", SHORT, 300, "Time before its expiry in which a credential is refreshed, in s.", mode=PER_BROKER, inert=_NO_OAUTH),
    Setting("sasl.login.refresh.min.period.seconds", SHORT, 60, "Least time between two refreshes of a credential, in s.", mode=PER_BROKER, inert=_NO_OAUTH),
    Setting("sasl.login.refresh.window.factor", DOUBLE, 0.8, "Part of a credential's life after which it is refreshed.", mode=PER_BROKER, inert=_NO_OAUTH),
    Setting("sasl.login.refresh.window.jitter", DOUBLE, 0.05, "Chance in the time of a refresh, as a part of the credential's life.", mode=PER_BROKER, inert=_NO_OAUTH),
    Setting("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", "The path of kinit.", mode=PER_BROKER, inert=_NO_KERBEROS),
    Setting("sasl.kerberos.min.time.before.relogin", LONG, 60000, "Least time between two Kerberos logins, in ms.", mode=PER_BROKER, inert=_NO_KERBEROS),
    Setting("sasl.kerberos.principal.to.local.rules", LIST, ("DEFAULT",), "Rules from Kerberos principals to short names.", mode=PER_BROKER, inert=_NO_KERBEROS),
    Setting("sasl.kerberos.service.name", STRING, None, "The Kerberos name of this service.", mode=PER_BROKER, inert=_NO_KERBEROS),
    Setting("sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, "Chance in the time of a renewal, as a part of the ticket's life.", mode=PER_BROKER, inert=_NO_KERBEROS),
    Setting("sasl.kerberos.ticket.renew.window.factor", DOUBLE, 0.8, "Part of a ticket's life after which it is renewed.", mode=PER_BROKER, inert=_NO_KERBEROS),
    Setting("sasl.oauthbearer.token.endpoint.url", STRING, None, "Where OAuth tokens are had.", inert=_NO_OAUTH),
    Setting("sasl.oauthbearer.scope", STRING, None, "The scope that an OAuth token is asked for with.", inert=_NO_OAUTH),
    Setting("sasl.oauthbearer.client.credentials.client.id", STRING, None, "The client id for OAuth's client credentials.", inert=_NO_OAUTH),
    Setting("sasl.oauthbearer.client.credentials.client.secret", PASSWORD, None, "The client secret for OAuth's client credentials.", inert=_NO_OAUTH),
    Setting("sasl.oauthbearer.jwt.retriever.class", CLASS, "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever", "What retrieves JSON web tokens.", inert=_NO_OAUTH),
    Setting("sasl.oauthbearer.jwt.validator.class", CLASS, "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator", "What validates JSON web tokens.", inert=_NO_OAUTH),
    Setting("sasl.oauthbearer.expected.audience", LIST, (), "Audiences of which a token must name one."),
    Setting("sasl.oauthbearer.expected.issuer", STRING, None, "The issuer that a token must name."),
    Setting("sasl.oauthbearer.clock.skew.seconds", INT, 30, "How far the clocks of issuer and broker may be apart, in s.", low=0),
    Setting("sasl.oauthbearer.scope.claim.name", STRING, "scope", "The claim that holds the scope."),
    Setting("sasl.oauthbearer.sub.claim.name", STRING, "sub", "The claim that holds the subject."),
    Setting("sasl.oauthbearer.jwks.endpoint.url", STRING, None, "URL of the issuer's public keys (JWKS) that tokens of OAUTHBEARER are verified with: file: or https:."),
    Setting("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, "Age from which the keys of the issuer are read again, in ms.", low=0),
    Setting("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100, "First wait before the keys of the issuer are tried again, in ms.", low=0),
    Setting("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10000, "Longest wait before the keys of the issuer are tried again, in ms.", low=0),
    Setting("sasl.oauthbearer.assertion.algorithm", STRING, "RS256", "The signature of an assertion: RS256 or ES256.", inert=_NO_OAUTH),
    Setting("sasl.oauthbearer.assertion.file", STRING, None, "A file with a finished assertion.", inert=_NO_OAUTH),
    Setting("sasl.oauthbearer.assertion.template.file", STRING, None, "A file with the claims of an assertion.", inert=_NO_OAUTH),
    Setting("sasl.oauthbearer.assertion.private.key.file", STRING, None, "The key that assertions are signed with.", inert=_NO_OAUTH),
    Setting("sasl.oauthbearer.assertion.private.key.passphrase", PASSWORD, None, "The passphrase of the key that assertions are signed with.", inert=_NO_OAUTH),
    Setting("sasl.oauthbearer.assertion.claim.aud", STRING, None, "Audience of an assertion.", inert=_NO_OAUTH),
    Setting("sasl.oauthbearer.assertion.claim.iss", STRING, None, "Issuer of an assertion.", inert=_NO_OAUTH),
    Setting("sasl.oauthbearer.assertion.claim.sub", STRING, None, "Subject of an assertion.", inert=_NO_OAUTH),
    Setting("sasl.oauthbearer.assertion.claim.jti.include", BOOLEAN, False, "Whether an assertion has an id of its own.", inert=_NO_OAUTH),
    Setting("sasl.oauthbearer.assertion.claim.exp.seconds", INT, 300, "Life of an assertion, in s.", low=0, high=86400, inert=_NO_OAUTH),
    Setting("sasl.oauthbearer.assertion.claim.nbf.seconds", INT, 60, "How long before now an assertion begins to be valid, in s.", low=0, high=3600, inert=_NO_OAUTH),
    Setting("ssl.protocol", STRING, "TLSv1.3", "The TLS version that is preferred.", mode=PER_BROKER, inert=_VERSIONS),
    Setting("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), "The TLS versions that are taken: TLSv1.2, TLSv1.3.", mode=PER_BROKER),
    Setting("ssl.cipher.suites", LIST, (), "The cipher suites that are taken, by IANA's names; of TLS 1.3 all or none. Not set: OpenSSL's choice.", mode=PER_BROKER),
    Setting("ssl.provider", STRING, None, "The JVM's TLS provider.", mode=PER_BROKER, inert=_OPENSSL),
    Setting("ssl.keystore.type", STRING, "JKS", "The form of the key store: JKS, PKCS12, PEM.", mode=PER_BROKER, inert=_FORM),
    Setting("ssl.keystore.key", PASSWORD, None, "The private key itself as PEM, in place of a file.", mode=PER_BROKER),
    Setting("ssl.keystore.certificate.chain", PASSWORD, None, "The certificate chain itself as PEM, in place of a file.", mode=PER_BROKER),
    Setting("ssl.truststore.type", STRING, "JKS", "The form of the trust store: JKS, PKCS12, PEM.", mode=PER_BROKER, inert=_FORM),
    Setting("ssl.truststore.certificates", PASSWORD, None, "The trusted certificates themselves as PEM, in place of a file.", mode=PER_BROKER),
    Setting("ssl.keymanager.algorithm", STRING, "SunX509", "The JVM's key manager.", mode=PER_BROKER, inert=_OPENSSL),
    Setting("ssl.trustmanager.algorithm", STRING, "PKIX", "The JVM's trust manager.", mode=PER_BROKER, inert=_OPENSSL),
    Setting("ssl.endpoint.identification.algorithm", STRING, "https", "How this node checks the host name in the certificate of a node that it connects to: https; empty: not at all.", choices=("https", ""), mode=PER_BROKER),
    Setting("ssl.engine.factory.class", CLASS, None, "What makes TLS engines.", mode=PER_BROKER, inert=_OPENSSL),
    Setting("ssl.principal.mapping.rules", STRING, "DEFAULT", "Rules from the subject of a client's certificate to its principal: RULE:PATTERN/REPLACEMENT/[LU], DEFAULT. Patterns are those of RE2."),
    Setting("ssl.secure.random.implementation", STRING, None, "The JVM's source of chance.", mode=PER_BROKER, inert=_OPENSSL),
    Setting("ssl.allow.dn.changes", BOOLEAN, False, "Whether a certificate may take the place of another while the appliance runs that has another subject."),
    Setting("ssl.allow.san.changes", BOOLEAN, False, "Whether a certificate may take the place of another while the appliance runs that is not for all of its alternative names."),
)  # fmt: skip
