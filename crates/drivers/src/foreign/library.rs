//! Shared libraries that are loaded at run time, where they are present.

use std::mem::ManuallyDrop;
use std::path::PathBuf;

use cipherlane_core::{Config, Error, environment};
use libloading::Library;

/// A library that a driver wants.
pub(crate) struct Wanted {
    /// The driver's name, which is also that of its table of settings.
    pub(crate) driver: &'static str,
    /// The file names to try, in order.
    pub(crate) names: &'static [&'static str],
    /// The environment variable that names another file.
    pub(crate) variable: &'static str,
    /// The Debian package that brings it.
    pub(crate) package: &'static str,
    /// The driver's settings. `library` is read here.
    pub(crate) settings: &'static [&'static str],
}

impl Wanted {
    /// Writes the environment variable, where it is set, over what configuration files say.
    pub(crate) fn environment(&self, config: &mut Config) {
        self.name_file(config, environment::text(self.variable));
    }

    fn name_file(&self, config: &mut Config, file: Option<String>) {
        if let Some(file) = file.filter(|file| !file.is_empty()) {
            let table = config.drivers.entry(self.driver.to_owned()).or_default();
            table.insert("library".to_owned(), file.into());
        }
    }

    /// The file that the user names by `library` in the driver's settings.
    pub(crate) fn setting(&self, config: &Config) -> Result<Option<PathBuf>, Error> {
        let refused = |problem: String| Error::Config {
            origin: format!("[drivers.{}]", self.driver),
            problem,
        };
        let mut file = None;
        for (name, value) in config.drivers.get(self.driver).into_iter().flatten() {
            match (name.as_str(), value.as_str()) {
                ("library", Some(path)) => file = Some(PathBuf::from(path)),
                ("library", None) => {
                    let problem = format!("library = {value}: write a path in quotes");
                    return Err(refused(problem));
                }
                (name, _) if self.settings.contains(&name) => {}
                (name, _) => {
                    let known = self.settings.join(", ");
                    return Err(refused(format!("unknown setting '{name}'; known: {known}")));
                }
            }
        }
        Ok(file)
    }

    /// Loads the file that the user names, or else the first of `names` that is there.
    /// `Err` says what to do.
    pub(crate) fn load(&self, file: Option<&PathBuf>) -> Result<SharedLibrary, String> {
        let files = match file {
            Some(file) => vec![file.clone()],
            None => self.names.iter().map(PathBuf::from).collect(),
        };
        let mut problem = String::new();
        for file in files {
            // SAFETY: loading runs the library's initialisers; these libraries' do nothing but
            // detect the processor, and the user vouches for a file of their choice.
            match unsafe { Library::new(&file) } {
                Ok(library) => {
                    return Ok(SharedLibrary {
                        name: file.display().to_string(),
                        library: ManuallyDrop::new(library),
                    });
                }
                // The loader's own words, which begin with the file's name.
                Err(error) => {
                    problem = match std::error::Error::source(&error) {
                        Some(source) => source.to_string(),
                        None => format!("{}: {error}", file.display()),
                    }
                }
            }
        }
        Err(format!(
            "{problem}: install the package {} (apt-get install {}), or name the file by \
             'library' in [drivers.{}] or by {}",
            self.package, self.package, self.driver, self.variable
        ))
    }
}

/// A loaded library. It stays loaded to the end of the process: threads that used it may
/// hold state that its code frees when they end.
pub(crate) struct SharedLibrary {
    name: String,
    library: ManuallyDrop<Library>,
}

impl SharedLibrary {
    /// The address of a function, as a function pointer of type `F`.
    ///
    /// # Safety
    /// `F` must be the type of a C function pointer that fits the symbol.
    pub(crate) unsafe fn function<F: Copy>(&self, symbol: &str) -> Result<F, String> {
        // SAFETY: the caller's promise; the library is never unloaded.
        match unsafe { self.library.get::<F>(symbol) } {
            Ok(function) => Ok(*function),
            Err(_) => Err(format!(
                "{} has no function {symbol}: it is another version; remove the setting \
                 'library' or name a file that has it",
                self.name
            )),
        }
    }
}

/// A table of C functions, loaded together: a missing one is a reason, not a crash.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident { $($name:ident: fn($($argument:ty),* $(; $variadic:tt)?) $(-> $result:ty)?;)* }) => {
        $(#[$doc])*
        #[allow(non_snake_case)]
        pub(super) struct $table {
            $(pub(super) $name: unsafe extern "C" fn($($argument),* $(, $variadic)?) $(-> $result)?,)*
        }

        impl $table {
            pub(super) fn load(library: &$crate::foreign::SharedLibrary) -> Result<Self, String> {
                Ok($table {
                    // SAFETY: the types below are those of the library's public header.
                    $($name: unsafe { library.function(stringify!($name)) }?,)*
                })
            }
        }
    };
}
pub(crate) use functions;

#[cfg(test)]
mod tests {
    use super::*;

    const LIBC: Wanted = Wanted {
        driver: "libc",
        names: &["libabsent.so.9", "libc.so.6"],
        variable: "CIPHERLANE_TEST_LIBC_LIBRARY",
        package: "libc6",
        settings: &["library"],
    };

    #[test]
    fn the_first_library_that_is_there_is_loaded() {
        let library = LIBC.load(None).unwrap();
        assert_eq!(library.name, "libc.so.6");
        // SAFETY: the type of abs(3).
        let abs = unsafe { library.function::<unsafe extern "C" fn(i32) -> i32>("abs") }.unwrap();
        // SAFETY: abs(3) takes any value but the least.
        assert_eq!(unsafe { abs(-3) }, 3);
        // SAFETY: the symbol is absent; no pointer is made.
        let absent = unsafe { library.function::<unsafe extern "C" fn()>("no_such_function") };
        assert!(absent.unwrap_err().contains("no_such_function"));
    }

    #[test]
    fn an_absent_file_is_a_reason_with_a_remedy() {
        let reason = LIBC.load(Some(&"/no/such.so".into())).err().unwrap();
        for part in ["/no/such.so", "libc6", "[drivers.libc]", LIBC.variable] {
            assert!(reason.contains(part), "{reason}");
        }
    }

    #[test]
    fn settings_are_read_and_bad_ones_refused_by_name() {
        let config = |text: &str| Config {
            drivers: [("libc".to_owned(), toml::from_str(text).unwrap())].into(),
            ..Config::default()
        };
        assert_eq!(LIBC.setting(&Config::default()).unwrap(), None);
        let named = LIBC.setting(&config("library = '/a/b.so'")).unwrap();
        assert_eq!(named, Some("/a/b.so".into()));
        let mut over = config("library = '/a/b.so'");
        LIBC.name_file(&mut over, None);
        LIBC.name_file(&mut over, Some(String::new()));
        assert_eq!(LIBC.setting(&over).unwrap(), named);
        LIBC.name_file(&mut over, Some("/c.so".to_owned()));
        assert_eq!(LIBC.setting(&over).unwrap(), Some("/c.so".into()));
        for bad in ["library = 3", "libary = '/a'"] {
            let message = LIBC.setting(&config(bad)).unwrap_err().to_string();
            assert!(message.contains("[drivers.libc]"), "{message}");
        }
    }
}
