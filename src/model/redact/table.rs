//! The places where programs take secrets: by program, subcommand and place.
//!
//! Each row names programs, subcommands of which one must follow (none: any), and places:
//!
//! | place | means |
//! |---|---|
//! | `-p`, `password` | the next word, or what follows `=`; of a short option also what is attached |
//! | `-p#` | only what is attached: the next word is something else |
//! | `-u:` | of that word what follows the sign (`:`, `%`, `,`, `/`) |
//! | `@login` | the first word behind that one that is no option; `@@login` the second |
//! | `$` | the last word, if it is no option; `set$`: if `set` is there |
//! | `.$` | the last word, if the one before it is a host |
//! | `*=` | the value of every `name=value` |

/// A row: programs, subcommands, places.
pub type SecretPlace = (&'static str, &'static str, &'static str);

/// Programs that take secrets in places of their own; options whose names say secret need no row.
pub const PROGRAMS: &[SecretPlace] = &[
    // databases
    (
        "mysql mysqldump mysqladmin mysqlimport mysqlshow mysqlsh mysqlcheck mariadb mariadb-dump mariadb-admin",
        "",
        "-p#",
    ),
    ("mysqladmin mariadb-admin", "", "@password"),
    ("mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat", "", "-p"),
    ("redis-cli valkey-cli keydb-cli", "", "-a AUTH auth requirepass masterauth"),
    ("cqlsh cypher-shell rabbitmqadmin clickhouse-client arangosh", "", "-p"),
    ("rabbitmqctl", "", "@@add_user @@change_password @@authenticate_user"),
    ("sqlcmd bcp osql isql tsql", "", "-P"),
    ("sqlplus sqlldr exp imp expdp impdp", "", "@sqlplus/ @exp/ @imp/ @expdp/ @impdp/ @sqlldr/"),
    ("etcdctl", "", "--user:"),
    ("influx", "", "-t"),
    // servers, directories, files elsewhere
    ("curl", "", "-u: --user: -U: --proxy-user: --oauth2-bearer --pass -E: --cert: -b= --cookie="),
    ("http https xh httpie", "", "-a:"),
    ("wget", "", "--password --http-password --ftp-password --proxy-password"),
    ("ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami ldapcompare ldapmodrdn ldapexop", "", "-w"),
    ("ldappasswd", "", "-w -s -a"),
    ("smbclient rpcclient smbget smbmap net winexe", "", "-U% --user%"),
    ("lftp", "", "-u, --user,"),
    ("ncftpget ncftpput", "", "-p"),
    ("sshpass", "", "-p"),
    ("plink pscp psftp", "", "-pw"),
    ("rdesktop ncftp swaks", "", "-p -ap"),
    ("sendemail sendEmail", "", "-xp"),
    ("mosquitto_pub mosquitto_sub", "", "-P"),
    ("mosquitto_passwd", "", "-b$"),
    ("consul", "acl", "@@set-agent-token"),
    ("snmpwalk snmpget snmpset snmpbulkwalk", "", "-A -X"),
    ("ipmitool", "", "-P"),
    ("p4", "", "-P"),
    ("psexec wmic winrs", "", "-p /password"),
    ("nmcli", "", "password wifi-sec.psk 802-11-wireless-security.psk"),
    ("iwconfig iw", "", "key enc"),
    ("networksetup", "", "-setairportnetwork$"),
    ("wpa_passphrase", "", "@@wpa_passphrase"),
    ("wpa_cli", "", "psk password"),
    ("crackmapexec nxc netexec evil-winrm hydra medusa", "", "-p"),
    // registries, clouds, deployments
    ("docker podman nerdctl buildah", "login", "-p"),
    ("helm oras crane regctl", "registry login auth", "-p"),
    ("skopeo", "", "--creds: --src-creds: --dest-creds:"),
    ("az", "login sql mysql postgres ad acr", "-p"),
    ("oc cf ibmcloud", "login", "-p"),
    ("cf", "auth", "@@auth"),
    ("kubectl oc k", "create", "--from-literal="),
    ("aws", "secretsmanager", "--secret-string --secret-binary"),
    ("aws", "ssm", "--value"),
    ("gh", "secret", "-b --body"),
    ("glab", "auth", "-t"),
    ("doctl", "auth", "-t"),
    ("vault bao", "login", "@login -token"),
    ("vault bao", "unseal operator", "@unseal"),
    ("vault bao", "kv write", "*="),
    ("fly flyctl", "secrets", "*="),
    ("heroku", "config:set config:add", ""),
    ("cloudflared", "service", "@install"),
    ("railway", "variables variable vars", "*="),
    ("supabase", "secrets", "*="),
    ("supabase", "link db", "-p"),
    ("netlify ntl", "", "@@env:set"),
    ("vercel vc", "", "-t"),
    ("travis", "encrypt", "*= @encrypt"),
    ("eas", "", "secret:create$"),
    ("az", "keyvault", "--value"),
    ("ansible-vault", "encrypt_string", "@encrypt_string"),
    ("dotenvx dotenv", "", "@@set"),
    ("wandb", "login", "$"),
    ("slack-cli slack slackcat", "", "-t"),
    ("twilio expo", "login", "-p"),
    ("glab", "variable", "@@set"),
    ("llm", "keys", "--value"),
    ("drush", "", "@@upwd @@user:password"),
    ("pulumi", "config", "--secret$"),
    ("ngrok", "authtoken config", "@authtoken @add-authtoken"),
    ("mc", "alias config", "set$ add$"),
    ("b2", "authorize-account account", "$"),
    ("snyk", "auth", "@auth"),
    ("rclone", "obscure", "@obscure"),
    ("rclone", "config", "pass password token secret_access_key"),
    ("infisical doppler", "secrets", "*="),
    // packages
    ("cargo", "login", "@login"),
    ("twine cabal", "upload", "-p"),
    ("conan", "user remote", "-p"),
    ("vsce ovsx", "publish", "-p"),
    ("cpan-upload", "", "-p"),
    ("nexus3", "login", "-p"),
    ("xcrun", "altool", "-p"),
    ("signtool", "sign", "/p"),
    ("mix", "hex.user", "--key"),
    ("nuget dotnet", "push setapikey nuget", "-k -ApiKey @setapikey"),
    ("dotnet nuget", "nuget sources", "-p"),
    ("dotnet", "user-secrets", "@@set"),
    ("bundle bundler", "config", ".$"),
    ("uv", "publish", "-t"),
    ("hatch", "publish", "-a --auth"),
    ("gem", "push", "-k --key"),
    ("poetry", "publish", "-p"),
    ("poetry composer", "config", "http-basic$ github-oauth$ gitlab-token$ bearer$"),
    ("npm pnpm yarn lerna", "token publish unpublish owner dist-tag deprecate", "--otp"),
    // archives, documents, keys
    ("zip unzip zipcloak zipnote", "", "-P"),
    ("7z 7za 7zr 7zz 7zip p7zip", "", "-p#"),
    ("rar unrar", "", "-hp# -p#"),
    ("qpdf", "", "@--encrypt @@--encrypt"),
    ("pdftk", "", "owner_pw user_pw input_pw"),
    ("pdftotext pdfinfo pdftoppm pdfimages", "", "-upw -opw"),
    ("openssl", "passwd", "$"),
    ("openssl", "", "-pass: -passin: -passout: -passwd: -k -K -hmac"),
    ("ssh-keygen", "", "-N -P"),
    ("keytool jarsigner", "", "-storepass -keypass -srcstorepass -deststorepass -srckeypass -destkeypass"),
    ("pk12util", "", "-W -K"),
    ("pkcs11-tool pkcs15-tool", "", "-p --pin --so-pin --new-pin"),
    ("yubico-piv-tool ykman", "", "-P -p --pin"),
    ("security", "", "-w -p -P -k"),
    ("bw", "login", "@@login"),
    ("bw", "unlock", "@unlock"),
    // users
    ("htpasswd", "", "-b$"),
    ("usermod useradd adduser chpasswd", "", "-p"),
    ("slappasswd", "", "-s"),
    ("steghide", "", "-p"),
    ("bitcoin-cli", "", "@walletpassphrase @encryptwallet @walletpassphrasechange @@walletpassphrasechange"),
    ("codecov codecovcli", "", "-t"),
    ("grafana-cli grafana", "", "@reset-admin-password"),
    ("doveadm caddy", "", "-p --plaintext"),
    ("mkpasswd", "", "$"),
    ("schtasks", "", "/rp"),
    ("cmdkey", "", "/pass"),
    ("xfreerdp wfreerdp", "", "/p"),
    ("ConvertTo-SecureString", "", "-String @ConvertTo-SecureString"),
];

/// Programs that read a secret from their standard input.
pub const READERS: &str = "chpasswd chgpasswd passwd smbpasswd vncpasswd kinit cryptsetup secret-tool ssh-add gpg-preset-passphrase \
     slappasswd pass gopass keepassxc-cli keyring ansible-vault";

/// Words that have a program read one.
pub const READING: &[&str] = &[
    "--password-stdin",
    "--with-token",
    "--passphrase-fd",
    "--stdin",
    "--pinentry-mode",
    "--token-stdin",
    "--api-key-stdin",
    "--data-file=-",
    "-passin:stdin",
    "stdin",
];

/// Subcommands that store what they read: one of the first words, and one behind it.
pub const STORING: (&[&str], &[&str]) =
    (&["secret", "secrets", "variable", "env"], &["set", "put", "create", "import", "add", "versions", "bulk"]);

/// Programs for which a here-string is data.
pub const HARMLESS_READERS: &str = "cat grep egrep fgrep rg sed awk gawk bc dc wc read mapfile readarray jq yq tr cut sort uniq head tail xargs \
     python python3 node ruby perl php tee md5sum sha1sum sha256sum sha512sum cksum base64 od xxd hexdump diff rev fold column paste nl psql \
     mysql sqlite3 bash sh zsh dash fish fzf while until for done fmt iconv comm join factor gunzip gzip patch crontab at batch vim ed git \
     kubectl docker curl echo printf";
