//! What is wrong with a configuration, and the remedies.

use std::path::{Path, PathBuf};

use cipherlane_core::environment;
use serde::Serialize;

use crate::failure::Failure;
use crate::openssl::block::NAME;
use crate::openssl::cnf::{Cnf, Setting};
use crate::openssl::fips;
use crate::openssl::measure::{HeldFor, Measured};
use crate::openssl::module::{self, FILE, TITLE};
use crate::openssl::program::{self, Openssl};
use crate::openssl::watch;

const CONFIGURE: &str = "run eval \"$(cipherlane openssl env)\" for this shell, or 'cipherlane \
                         openssl install' for the whole system";

/// Names of a list of ciphers, and characters of each, that are looked at.
const MAX_NAMES: usize = 64;
const MAX_NAME: usize = 64;

/// Ciphers that `openssl enc` has, with the bytes of their keys: one that is offered is tried.
const TRIED: [(&str, usize); 9] = [
    ("AES-128-CTR", 16),
    ("AES-256-CTR", 32),
    ("AES-192-CTR", 24),
    ("AES-128-CBC", 16),
    ("AES-256-CBC", 32),
    ("AES-192-CBC", 24),
    ("AES-128-ECB", 16),
    ("AES-256-ECB", 32),
    ("AES-192-ECB", 24),
];

/// What there is, and what is wrong with it.
#[derive(Debug, Serialize)]
pub(crate) struct Diagnosis {
    /// Of the program `openssl`.
    pub(crate) openssl: String,
    /// The file that programs started here read.
    pub(crate) openssl_conf: PathBuf,
    /// The provider's file, where one is configured.
    pub(crate) module: Option<PathBuf>,
    /// What the provider says.
    pub(crate) provider_version: Option<String>,
    /// The ciphers that the configuration names for the provider; none: all are offered.
    pub(crate) ciphers: Option<Vec<String>>,
    /// What was measured for this configuration.
    pub(crate) measured: Option<Measured>,
    /// Whether `openssl` really encrypted by it.
    pub(crate) used: bool,
    /// Whether the ciphers that are offered can be tried by `openssl enc`.
    pub(crate) triable: bool,
    /// None: all is well.
    pub(crate) problems: Vec<Problem>,
}

/// Something that is wrong.
#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    pub(crate) what: String,
    pub(crate) remedy: String,
}

impl Diagnosis {
    /// Looks at the present configuration, and tries it.
    pub(crate) fn make() -> Result<Diagnosis, Failure> {
        let openssl = Openssl::ask()?;
        let mut cnf = Cnf::default();
        let mut diagnosis = Diagnosis {
            openssl_conf: openssl.present_cnf(),
            openssl: openssl.version.clone(),
            module: None,
            provider_version: None,
            ciphers: None,
            measured: None,
            used: false,
            triable: true,
            problems: Vec::new(),
        };
        match Cnf::read(&diagnosis.openssl_conf) {
            Ok(read) => {
                cnf = read;
                diagnosis.read(&cnf, &openssl)?;
            }
            Err(failure) => {
                let remedy = match environment::variable("OPENSSL_CONF") {
                    Some(_) => "let OPENSSL_CONF name a file that is there, or unset it",
                    None => CONFIGURE,
                };
                diagnosis.problem(failure.to_string(), remedy);
            }
        }
        diagnosis.try_it(&cnf)?;
        Ok(diagnosis)
    }

    fn problem(&mut self, what: impl Into<String>, remedy: impl Into<String>) {
        self.problems.push(Problem {
            what: what.into(),
            remedy: remedy.into(),
        });
    }

    fn read(&mut self, cnf: &Cnf, openssl: &Openssl) -> Result<(), Failure> {
        let file = self.openssl_conf.display().to_string();
        let Some(init) = cnf.top("openssl_conf") else {
            self.problem(
                format!("'{file}' does not name a section by openssl_conf, so nothing is loaded"),
                CONFIGURE,
            );
            return Ok(());
        };
        let providers = cnf.get(&init.value, "providers").map(|p| p.value.as_str());
        let entry = providers.and_then(|providers| entry(cnf, providers));
        let (Some(providers), Some(entry)) = (providers, entry) else {
            self.problem(
                format!("'{file}' does not list the provider {NAME}"),
                CONFIGURE,
            );
            return Ok(());
        };
        let active = |entry: &Setting| fips::active(cnf, entry);
        if let Some(why) = fips::restricted(cnf).or_else(|| fips::demanded(cnf)) {
            self.problem(
                why,
                "leave it so where FIPS 140 is demanded: take the provider out with 'cipherlane \
                 openssl install --uninstall' or by OPENSSL_CONF; where it is not, take that \
                 line out",
            );
            return Ok(());
        }
        if !active(entry) {
            self.problem(
                format!(
                    "the provider {} of {} is not activated",
                    entry.name,
                    entry.place()
                ),
                format!("add 'activate = 1' to the section [{}]", entry.value),
            );
        }
        match cnf.get(providers, "default") {
            Some(default) if active(default) => {}
            Some(default) => self.problem(
                format!(
                    "the default provider of {} is not activated, so everything that {NAME} does \
                     not have (TLS, keys, digests) fails",
                    default.place()
                ),
                format!("add 'activate = 1' to the section [{}]", default.value),
            ),
            None => self.problem(
                format!(
                    "'{file}' activates a provider but not the default provider, so everything \
                     that {NAME} does not have (TLS, keys, digests) fails"
                ),
                format!(
                    "add 'default = default_sect' to the section [{providers}], and a section \
                     [default_sect] with 'activate = 1'"
                ),
            ),
        }
        self.query(cnf, &init.value, &entry.name);
        let module = match cnf.get(&entry.value, "module") {
            // Relative, it is looked for in the directory of modules; absolute, it replaces that.
            Some(module) => openssl.modules.join(&module.value),
            None => openssl.modules.join(format!("{}.so", entry.name)),
        };
        self.load(module)?;
        self.figures(cnf, entry, openssl)
    }

    /// Which ciphers are offered, and whether what was measured still holds.
    fn figures(&mut self, cnf: &Cnf, entry: &Setting, openssl: &Openssl) -> Result<(), Failure> {
        self.ciphers = list(cnf).map(|list| {
            let names = list.value.split(',').map(str::trim).take(MAX_NAMES);
            // Whoever wrote the file may not be whose terminal this is.
            let shown = |name: &str| name.escape_debug().take(MAX_NAME).collect();
            names.map(shown).collect()
        });
        // The lines and the figures were written together.
        let lines = cnf
            .get(&entry.value, "module")
            .map_or(entry, |module| module);
        let again = "measure again with 'cipherlane openssl env --measure', or, where it is \
                     installed, 'cipherlane openssl install --measure'";
        match Measured::read(&lines.file) {
            Ok(measured) => self.measured = measured,
            Err(reason) => {
                self.problem(format!("what was measured cannot be read: {reason}"), again)
            }
        }
        let module = self.module.as_ref().filter(|module| module.exists());
        if let (Some(measured), Some(module), Some(_)) = (&self.measured, module, &self.ciphers) {
            let now = HeldFor::now(&openssl.library, module)?;
            if let Some(change) = measured.held_for.changed(&now) {
                let what = format!("the ciphers were measured {change}: others may be ahead");
                self.problem(what, again);
            }
        }
        Ok(())
    }

    /// The query by which one of several providers of a cipher is chosen.
    fn query(&mut self, cnf: &Cnf, init: &str, name: &str) {
        let Some(query) = cnf
            .get(init, "alg_section")
            .and_then(|section| cnf.get(&section.value, "default_properties"))
        else {
            return;
        };
        let strict = format!("provider={name}");
        let clauses = query.value.split(',').map(|clause| clause.replace(' ', ""));
        for clause in clauses {
            if clause == strict {
                self.problem(
                    format!(
                        "the query '{}' of {} has no '?', so everything that {NAME} does not have \
                         (TLS, keys, digests) fails",
                        query.value,
                        query.place()
                    ),
                    format!("write 'default_properties = ?provider={name}'"),
                );
            } else if clause.contains("provider=") && clause != format!("?{strict}") {
                self.problem(
                    format!(
                        "the query '{}' of {} asks for another provider",
                        query.value,
                        query.place()
                    ),
                    format!("write 'default_properties = ?provider={name}'"),
                );
            }
        }
    }

    /// Whether OpenSSL can load the file, and whether it is of this version.
    fn load(&mut self, module: PathBuf) -> Result<(), Failure> {
        let name = module.display().to_string();
        self.module = Some(module.clone());
        let own = env!("CARGO_PKG_VERSION");
        let again = "install it again with 'cipherlane openssl install', or write the \
                     configuration anew with 'cipherlane openssl env'";
        if !module.exists() {
            self.problem(
                format!("the provider's file '{name}' is missing; OpenSSL says nothing of that"),
                again,
            );
            return Ok(());
        }
        match program::load(&module)? {
            Err(reason) => self.problem(
                format!("OpenSSL cannot load the provider's file '{name}': {reason}"),
                again,
            ),
            Ok(provider) if provider.title != TITLE => self.problem(
                format!("'{name}' is another provider: '{}'", provider.title),
                again,
            ),
            Ok(provider) => {
                if provider.version != own {
                    self.problem(
                        format!(
                            "the provider's file '{name}' is version {}, this command is {own}",
                            provider.version
                        ),
                        again,
                    );
                } else if let Some(newer) = module::newer(&module) {
                    self.problem(
                        format!(
                            "the provider's file '{name}' is an older build than '{}'",
                            newer.display()
                        ),
                        again,
                    );
                }
                self.provider_version = Some(provider.version);
            }
        }
        Ok(())
    }

    /// Whatever was read: is it used?
    fn try_it(&mut self, cnf: &Cnf) -> Result<(), Failure> {
        let offered = |(name, _): &(&str, usize)| {
            let ciphers = self.ciphers.as_ref();
            ciphers.is_none_or(|list| list.iter().any(|own| own.eq_ignore_ascii_case(name)))
        };
        let found = TRIED.into_iter().find(offered);
        self.triable = found.is_some();
        let (cipher, key_len) = found.unwrap_or(TRIED[0]);
        let place = watch::Statistics::new()?;
        let output = program::use_cipher(cipher, key_len, &place.file())?;
        let used = place.processes()?;
        self.used = used
            .iter()
            .any(|process| process.ciphers.contains_key(cipher));
        let mut told = used
            .iter()
            .filter_map(|process| process.ciphers_problem.as_ref());
        if let Some(what) = told.next() {
            self.problems.push(watch::ciphers_problem(what, list(cnf)));
        }
        if self.used || !self.problems.is_empty() {
            return Ok(());
        }
        if !output.status.success() {
            self.problem(
                format!("'openssl enc' fails: {}", program::reason(&output)),
                format!("look for the mistake in '{}'", self.openssl_conf.display()),
            );
        } else if used.is_empty() {
            self.problem(
                "OpenSSL does not load the provider, though it is configured",
                "look for what 'openssl list -providers' says, and install it again",
            );
        } else if self.triable {
            self.problem(
                match fips::kernel() {
                    true => {
                        "OpenSSL loads the provider but takes another one's AES, since this \
                         kernel demands validated ciphers (fips_enabled)"
                    }
                    false => "OpenSSL loads the provider but prefers another one's AES",
                },
                format!(
                    "name a section by 'alg_section' in the section that openssl_conf names, with \
                     'default_properties = ?provider={NAME}'"
                ),
            );
        }
        Ok(())
    }
}

/// The list of ciphers in the provider's section.
fn list(cnf: &Cnf) -> Option<&Setting> {
    let init = cnf.top("openssl_conf")?;
    let providers = cnf.get(&init.value, "providers")?;
    cnf.get(&entry(cnf, &providers.value)?.value, "ciphers")
}

/// The entry of our provider: by its name, or by its file's.
fn entry<'a>(cnf: &'a Cnf, providers: &str) -> Option<&'a Setting> {
    cnf.get(providers, NAME).or_else(|| {
        cnf.section(providers).find(|entry| {
            let module = cnf.get(&entry.value, "module");
            module.is_some_and(|module| Path::new(&module.value).ends_with(FILE))
        })
    })
}
