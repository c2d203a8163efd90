//! Tests of passwords and certificates: which clients are accepted, what is checked, and what is never shown.

use super::{chain, create, settings_at};
use quittance_ports::conformance::samples::{self, START};
use quittance_servers::Postgres;
use quittance_store_postgres::{PostgresOpenError, PostgresStore, Settings};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

const PASSWORD: &str = "pässwörd-s3cret'\"";

/// A test authority, and a server on loopback with a certificate from it.
fn encrypted() -> (Postgres, String) {
    let mut of_authority = CertificateParams::new(Vec::new()).unwrap();
    of_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(of_authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let server = Postgres::start(&[]);
    // The server writes them by itself, so that they are its own.
    for (name, pem) in [("server.crt", certificate.pem()), ("server.key", key.serialize_pem())] {
        server.sql(&format!(
            "COPY (SELECT unnest(string_to_array('{}', E'\\n'))) TO PROGRAM 'umask 077 && cat > {name}'",
            pem.trim()
        ));
    }
    server.sql("ALTER SYSTEM SET ssl = on");
    server.sql("SELECT pg_reload_conf()");
    (server, authority.pem())
}

async fn open_with(
    server: &Postgres,
    sslmode: &str,
    ca: Option<&str>,
) -> Result<PostgresStore, PostgresOpenError> {
    let url = format!("{}?schema=tls&sslmode={sslmode}", server.url());
    let settings = Settings::parse(&url).unwrap();
    PostgresStore::open(match ca {
        Some(pem) => settings.with_ca(pem.as_bytes().to_vec()),
        None => settings,
    })
    .await
}

fn encrypted_sessions(server: &Postgres) -> String {
    server.sql("SELECT count(*) > 0 FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND application_name = 'quittance'")
}

#[test]
fn connections_are_encrypted_and_servers_are_checked_as_configured() {
    super::run(async {
        let (server, ca) = encrypted();
        super::until("it is encrypted", async || server.sql("SHOW ssl") == "on").await;
        let plain = open_with(&server, "disable", None).await.unwrap();
        assert_eq!(encrypted_sessions(&server), "f");
        drop(plain);
        for (sslmode, ca) in
            [("prefer", None), ("require", None), ("verify-full", Some(&*ca)), ("prefer", Some(&*ca))]
        {
            let store = open_with(&server, sslmode, ca).await.unwrap();
            assert_eq!(encrypted_sessions(&server), "t", "{sslmode}");
            create(&store, &samples::queued(&format!("{sslmode} {}", ca.is_some()), START).order).await;
        }
        let (_, stranger) = encrypted();
        for (sslmode, ca) in
            [("verify-full", None), ("verify-full", Some(&*stranger)), ("require", Some(&*stranger))]
        {
            let refused = open_with(&server, sslmode, ca).await.unwrap_err();
            assert!(
                matches!(refused, PostgresOpenError::Unreachable { .. })
                    && refused.to_string().contains("certificate"),
                "{refused}"
            );
        }
    });
}

#[test]
fn a_password_is_required_accepted_and_never_shown() {
    super::run(async {
        let server = Postgres::start(&[]);
        server.sql(&format!(
            "SET password_encryption = 'scram-sha-256'; CREATE ROLE ann LOGIN SUPERUSER PASSWORD '{}'",
            PASSWORD.replace('\'', "''")
        ));
        server.sql("COPY (VALUES ('host all ann all scram-sha-256'), ('host all all all trust')) TO PROGRAM 'cat > pg_hba.conf'");
        server.sql("SELECT pg_reload_conf()");
        let url = server.url().replace("quittance@", "ann@");
        let ann = settings_at(&url, "secret");
        let store = PostgresStore::open(ann.clone().with_password(PASSWORD)).await.unwrap();
        create(&store, &samples::queued("let in", START).order).await;
        for (settings, what) in
            [(ann.clone(), "none"), (ann.clone().with_password("wr0ng-s3cret"), "a wrong one")]
        {
            let refused = PostgresStore::open(settings).await.unwrap_err();
            assert!(matches!(refused, PostgresOpenError::Refused { .. }), "{what}: {refused}");
            assert!(!chain(&refused).contains("s3cret"));
        }
        let text = format!(
            "{store:?} {:?} {}",
            ann.clone().with_password(PASSWORD),
            ann.with_password(PASSWORD).address()
        );
        assert!(!text.contains("s3cret") && text.contains("ann@127.0.0.1"), "{text}");
    });
}
