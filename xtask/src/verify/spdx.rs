//! Licence expressions as Cargo.toml files have them.

/// Whether an expression can be met with allowed licences only.
///
/// # Errors
/// When it is no expression.
pub(super) fn is_allowed(expression: &str, allowed: &[String]) -> Result<bool, String> {
    // An old way to write OR.
    let spaced = expression.replace('/', " OR ");
    let spaced = spaced.replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser {
        words: &words,
        at: 0,
        allowed,
    };
    let result = parser.either()?;
    match parser.word() {
        None => Ok(result),
        Some(word) => Err(format!("unexpected {word:?} in {expression:?}")),
    }
}

struct Parser<'a> {
    words: &'a [&'a str],
    at: usize,
    allowed: &'a [String],
}

impl Parser<'_> {
    fn word(&self) -> Option<&str> {
        self.words.get(self.at).copied()
    }

    fn take(&mut self, word: &str) -> bool {
        let is = self.word() == Some(word);
        self.at += usize::from(is);
        is
    }

    /// AND binds more than OR.
    fn either(&mut self) -> Result<bool, String> {
        let mut result = self.both()?;
        while self.take("OR") {
            result |= self.both()?;
        }
        Ok(result)
    }

    fn both(&mut self) -> Result<bool, String> {
        let mut result = self.single()?;
        while self.take("AND") {
            result &= self.single()?;
        }
        Ok(result)
    }

    fn single(&mut self) -> Result<bool, String> {
        if self.take("(") {
            let result = self.either()?;
            return if self.take(")") {
                Ok(result)
            } else {
                Err("a bracket is not closed".to_owned())
            };
        }
        let mut name = self.name()?;
        if self.take("WITH") {
            let exception = self.name()?;
            name = format!("{name} WITH {exception}");
        }
        Ok(self.allowed.contains(&name))
    }

    fn name(&mut self) -> Result<String, String> {
        match self.word() {
            Some(word) if !["(", ")", "AND", "OR", "WITH"].contains(&word) => {
                let name = word.to_owned();
                self.at += 1;
                Ok(name)
            }
            other => Err(format!("expected a licence, found {other:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str) -> Result<bool, String> {
        let allowed = [
            "MIT",
            "Apache-2.0",
            "Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ];
        is_allowed(expression, &allowed.map(str::to_owned))
    }

    #[test]
    fn one_way_that_is_allowed_is_enough() {
        for expression in [
            "MIT",
            "GPL-3.0-only OR MIT",
            "Unlicense/MIT",
            "(MIT OR GPL-2.0-only) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
            "GPL-2.0-only AND BSL-1.0 OR MIT",
        ] {
            assert_eq!(check(expression), Ok(true), "{expression}");
        }
    }

    #[test]
    fn everything_that_must_hold_must_be_allowed() {
        for expression in [
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "(MIT OR Apache-2.0) AND OpenSSL",
            "MIT WITH GPL-exception",
            "mit",
        ] {
            assert_eq!(check(expression), Ok(false), "{expression}");
        }
    }

    #[test]
    fn what_is_no_expression_is_an_error() {
        for expression in ["", "MIT OR", "(MIT", "MIT Apache-2.0", "AND MIT", "MIT)"] {
            assert!(check(expression).is_err(), "{expression}");
        }
    }
}
