#pragma once

#include <string>

#include <zkrecipes/export.hpp>

namespace zkrecipes {

/// TLS for all connections of a session: SessionOptions::tls.
///
/// Needs a ZooKeeper C client that was built with OpenSSL, which Debian's is not; features() tells whether the one in
/// use was. Without it, Session's constructor throws Error unsupported: a session with these options never uses a
/// connection without TLS. All three files are needed, because the C client cannot connect without a certificate of its
/// own. They are read again at each connect. Only the authorities in `ca_file` count, not those that the system trusts.
/// Whether the certificate is for the address of the server is not checked. See docs/encryption.md.
struct ZKRECIPES_API TlsOptions {
    std::string ca_file{};           ///< PEM: the authorities that the servers' certificates may come from
    std::string certificate_file{};  ///< PEM: the certificate of this client, and those that link it to its authority
    std::string key_file{};          ///< PEM, not encrypted: the key of this certificate; only its owner may read it
    /// If set, the certificate of each server must be for this host name: one name for all servers of the ensemble.
    std::string server_name{};

    bool operator==(const TlsOptions&) const = default;
};

/// Authentication by SASL with the mechanism DIGEST-MD5: SessionOptions::sasl. The servers know the session by the
/// scheme "sasl" and its user.
///
/// Needs a ZooKeeper C client that was built with Cyrus SASL, which Debian's is not; features() tells whether the one
/// in use was. Without it, Session's constructor throws Error unsupported. Not together with `tls`, which the C client
/// cannot do. SASL does not encrypt: everything but the password is sent in clear text.
struct ZKRECIPES_API SaslOptions {
    std::string user{};                    ///< its name on the servers
    std::string password{};                ///< or `password_file`
    std::string password_file{};           ///< its first line is the password; read once; only its owner may read it
    std::string mechanism = "DIGEST-MD5";  ///< no other one is possible
    std::string service = "zookeeper";     ///< the service that the servers' configuration names
    std::string host = "zk-sasl-md5";      ///< the host that the servers use in DIGEST-MD5, wherever they run
    std::string realm{};                   ///< empty: the one that the servers offer
};

}  // namespace zkrecipes
