//! The documents of a file of JSON: itself, or those of its list, each by itself.

use anyhow::{Context, bail};
use muster_text::Value;
use std::io::{BufRead, BufReader, Read};

const NO_JSON: &str = "it is neither JSON nor a database";

/// The rest of a file.
#[derive(Debug)]
pub struct Documents<R: Read> {
    text: BufReader<R>,
    is_list: bool,
    /// Whether one was read.
    has_begun: bool,
}

impl<R: Read> Documents<R> {
    pub fn of(file: R) -> anyhow::Result<Self> {
        let mut text = BufReader::new(file);
        let is_list = peeked(&mut text)? == Some(b'[');
        if is_list {
            text.consume(1);
        }
        Ok(Self { text, is_list, has_begun: false })
    }

    /// The next one; `None`: that was the last.
    pub fn read_next(&mut self) -> anyhow::Result<Option<Value>> {
        let has_begun = std::mem::replace(&mut self.has_begun, true);
        match (self.is_list, peeked(&mut self.text)?) {
            (false, None) if has_begun => return Ok(None),
            (false, Some(_)) if has_begun => bail!("something follows the report"),
            (true, Some(b']')) => {
                self.text.consume(1);
                self.is_list = false;
                return self.read_next();
            }
            (true, Some(b',')) if has_begun => self.text.consume(1),
            (true, _) if has_begun => bail!("a list of reports is cut off, or has no comma between two"),
            _ => {}
        }
        // An object ends with its bracket: nothing that follows is read.
        let document = serde_json::Deserializer::from_reader(&mut self.text).into_iter::<Value>().next();
        document.context(NO_JSON)?.context(NO_JSON).map(Some)
    }
}

/// The next byte that is not blank, which stays.
fn peeked(text: &mut impl BufRead) -> anyhow::Result<Option<u8>> {
    loop {
        match text.fill_buf().context(NO_JSON)?.first().copied() {
            Some(blank) if blank.is_ascii_whitespace() => text.consume(1),
            other => return Ok(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::error::chain;

    #[test]
    fn documents_are_read_one_at_a_time() {
        let read = |text: &str| {
            let mut documents = Documents::of(text.as_bytes())?;
            let mut all = Vec::new();
            while let Some(document) = documents.read_next()? {
                all.push(document.to_string());
            }
            anyhow::Ok(all.join(" "))
        };
        let rows = [(r#"{"a":1}"#, r#"{"a":1}"#), ("[]", ""), (" [ {\"a\":1} ,\n{\"b\":[2]} ]\n", r#"{"a":1} {"b":[2]}"#)];
        for (text, expected) in rows {
            assert_eq!(read(text).unwrap(), expected, "{text}");
        }
        let wrong = ["", "text", "[{\"a\":1}", "[{\"a\":1} {\"b\":2}]", "{\"a\":1} {\"b\":2}", "[{\"a\":1}] []", "[{\"a\":"];
        let said: Vec<String> = wrong.iter().map(|text| chain(read(text).unwrap_err().as_ref())).collect();
        insta::assert_snapshot!(said.join("\n"), @"
        it is neither JSON nor a database
        it is neither JSON nor a database: expected ident at line 1 column 2
        a list of reports is cut off, or has no comma between two
        a list of reports is cut off, or has no comma between two
        something follows the report
        something follows the report
        it is neither JSON nor a database: EOF while parsing a value at line 1 column 5
        ");
    }
}
