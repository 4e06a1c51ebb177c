//! Scans a text into lines of tokens. The parser says where scalars, lists and mappings are; all that is between them is
//! punctuation, blanks and comments.

use granit_parser::{Event, Parser, ScalarStyle, StructureStyle, options};

/// A line to print, without its spaces.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The new column of its first token. Of a comment alone: once it is known what it belongs to.
    pub(super) indent: usize,
    /// Original column of its first token.
    pub(super) column: usize,
    /// Whether an empty line is before it.
    pub(super) after_gap: bool,
    pub(super) tokens: Vec<Token>,
    pub(super) comment: Option<Comment>,
    /// The text of a block scalar that begins on this line, in its new indentation.
    pub(super) body: String,
}

/// A comment, with its `#`.
#[derive(Debug)]
pub(super) struct Comment {
    pub(super) text: String,
    /// Original column.
    pub(super) column: usize,
    /// Number of spaces before it.
    pub(super) gap: usize,
    /// Of a comment alone on its line: the old and new columns of what was open before it, innermost first.
    pub(super) around: Vec<(usize, usize)>,
}

#[derive(Debug)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    /// As written. Further lines of a scalar are indented already.
    pub(super) text: String,
    /// Original column.
    pub(super) column: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Scalar,
    Alias,
    /// `&anchor` or `!tag`.
    Property,
    /// `-` or `?`.
    Item,
    /// The `:` after a key of a mapping without braces.
    BlockColon,
    /// The `:` within braces.
    FlowColon,
    Comma,
    Open,
    Close,
    /// `---`, `...`, `%...`
    Marker,
}

/// A list or mapping whose end has not been read.
struct Frame {
    is_map: bool,
    shape: Shape,
    /// The old column of its keys or dashes.
    column: usize,
    /// The new one; within brackets: that of the closing bracket, if it begins a line.
    indent: usize,
    /// Of a mapping: whether a key comes next.
    wants_key: bool,
    /// A `?` was read for the key that comes next.
    explicit: bool,
}

/// How a list or mapping is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Block,
    Bracketed,
    /// `[a: 1]`: a mapping within brackets that has none of its own.
    BarePair,
}

struct Scan<'t> {
    text: &'t str,
    cursor: usize,
    frames: Vec<Frame>,
    lines: Vec<Line>,
    /// Line ends since the last token or comment.
    breaks: usize,
}

/// The lines of a text without mistakes. `None`: something is written in a way that is not foreseen here.
pub(super) fn lines(text: &str) -> Option<Vec<Line>> {
    let mut scan = Scan { text, cursor: 0, frames: vec![], lines: vec![], breaks: 1 };
    let parser = Parser::new_from_str_with_options(text, options! { emit_unresolved_aliases: true, emit_comments: false });
    for step in parser {
        let (event, place) = step.ok()?;
        scan.take(&event, place.byte_range().unwrap_or(text.len()..text.len()))?;
    }
    scan.gap(text.len())?;
    Some(scan.lines)
}

impl Scan<'_> {
    fn take(&mut self, event: &Event<'_>, at: std::ops::Range<usize>) -> Option<()> {
        match event {
            Event::Scalar(_, ScalarStyle::Literal | ScalarStyle::Folded, ..) => self.block_scalar(&at)?,
            Event::Scalar(_, style, ..) => {
                self.gap(at.start)?;
                if !(at.is_empty() && *style == ScalarStyle::Plain) {
                    self.scalar(TokenKind::Scalar, at.end)?;
                }
            }
            Event::Alias(..) | Event::UnresolvedAlias(..) => {
                self.gap(at.start)?;
                self.scalar(TokenKind::Alias, at.end)?;
            }
            Event::SequenceStart(style, ..) => return self.begin(at.start, *style, false),
            Event::MappingStart(style, ..) => return self.begin(at.start, *style, true),
            Event::SequenceEnd | Event::MappingEnd => return self.end(at.start),
            _ => return Some(()),
        }
        self.node_is_over();
        Some(())
    }

    fn begin(&mut self, start: usize, style: StructureStyle, is_map: bool) -> Option<()> {
        let flow = matches!(style, StructureStyle::Flow);
        // The parser puts a list in the column of its key after the first dash.
        let is_value = self.frames.last().is_some_and(|parent| parent.is_map && parent.shape == Shape::Block);
        let dash = find(self.text.get(self.cursor..start)?, &['-']).filter(|_| !flow && !is_map && is_value);
        let start = dash.map_or(start, |dash| self.cursor + dash);
        self.gap(start)?;
        let begins_line = self.breaks > 0;
        let own = self.node_indent();
        // Anchor and tag of a first key are before it and belong to its column.
        let column = match self.lines.last() {
            Some(line) if !begins_line && line.tokens.iter().all(|token| token.kind == TokenKind::Property) => line.column,
            _ => self.column(start),
        };
        let bracket = self.text[start..].chars().next().filter(|c| flow && matches!(c, '[' | '{'));
        let indent = match self.frames.last() {
            Some(parent) if flow && parent.is_map && parent.shape == Shape::Block && !begins_line => parent.indent,
            _ => own,
        };
        if let Some(bracket) = bracket {
            self.push(TokenKind::Open, bracket.to_string(), start, own);
            self.cursor = start + 1;
        }
        let shape = match (flow, bracket) {
            (false, _) => Shape::Block,
            (true, Some(_)) => Shape::Bracketed,
            (true, None) => Shape::BarePair,
        };
        self.frames.push(Frame { is_map, shape, column, indent, wants_key: true, explicit: false });
        Some(())
    }

    fn end(&mut self, start: usize) -> Option<()> {
        let frame = self.frames.last()?;
        let (shape, indent) = (frame.shape, frame.indent);
        if shape == Shape::Bracketed {
            let from = self.cursor.max(start);
            let close = self.text.get(from..)?.find([']', '}'])? + from;
            self.gap(close)?;
            self.push(TokenKind::Close, self.text[close..=close].to_owned(), close, indent);
            self.cursor = close + 1;
        } else {
            self.gap(start)?;
        }
        self.frames.pop();
        self.node_is_over();
        Some(())
    }

    fn node_is_over(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.wants_key = frame.is_map && !frame.wants_key;
            frame.explicit = false;
        }
    }

    /// The column of the next value, if it begins a line.
    fn node_indent(&self) -> usize {
        match self.frames.last() {
            None => 0,
            Some(frame) if frame.shape == Shape::BarePair => frame.indent,
            Some(frame) if frame.shape == Shape::Bracketed => frame.indent + 2,
            Some(frame) if frame.is_map && frame.wants_key && !frame.explicit => frame.indent,
            Some(frame) => frame.indent + 2,
        }
    }

    fn column(&self, at: usize) -> usize {
        let begin = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        self.text[begin..at].chars().count()
    }

    fn push(&mut self, kind: TokenKind, text: String, at: usize, indent: usize) {
        let column = self.column(at);
        if self.breaks > 0 || self.lines.is_empty() {
            let after_gap = self.breaks > 1 && !self.lines.is_empty();
            self.lines.push(Line { indent, column, after_gap, ..Line::default() });
            self.breaks = 0;
        }
        if let Some(line) = self.lines.last_mut() {
            line.tokens.push(Token { kind, text, column });
        }
    }

    /// A scalar on one or more lines; the indentation of further ones means nothing.
    fn scalar(&mut self, kind: TokenKind, end: usize) -> Option<()> {
        let written = self.text.get(self.cursor..end)?.trim_end();
        let indent = self.node_indent();
        let further = self.frames.last().map_or(2, |frame| frame.indent + if frame.shape == Shape::BarePair { 0 } else { 2 });
        let mut lines = written.split('\n');
        let mut text = lines.next()?.to_owned();
        let is_plain = !written.starts_with(['"', '\'']);
        for line in lines {
            let line = line.trim_start_matches([' ', '\t']);
            text.push('\n');
            if !line.is_empty() {
                text.extend(std::iter::repeat_n(' ', further));
                text += if is_plain { line.trim_end() } else { line };
            }
        }
        let written = written.len();
        self.push(kind, text, self.cursor, indent);
        self.cursor += written;
        Some(())
    }

    /// `|` or `>`: a header, perhaps a comment, and lines whose indentation is theirs but for where it begins.
    fn block_scalar(&mut self, at: &std::ops::Range<usize>) -> Option<()> {
        let header = self.cursor + find(&self.text[self.cursor..], &['|', '>'])?;
        self.gap(header)?;
        let rest = &self.text[header..];
        let written = rest.split([' ', '\t', '\n']).next().unwrap_or(rest);
        self.push(TokenKind::Scalar, written.to_owned(), header, self.node_indent());
        self.cursor = header + written.len();
        let line_end = self.text[self.cursor..].find('\n').map_or(self.text.len(), |end| self.cursor + end);
        self.gap(line_end)?;
        if line_end == self.text.len() {
            return Some(());
        }
        let (old, new) = self.frames.last().map_or((0, 0), |frame| (frame.column, frame.indent));
        let explicit = written.chars().find_map(|c| c.to_digit(10)).map(|digit| digit as usize);
        let begin = line_end + 1;
        let first = self.text[begin..].split('\n').find(|line| !line.trim_matches(' ').is_empty()).unwrap_or_default();
        let has_text = at.start >= begin && self.text.get(at.clone()).is_some_and(|text| !text.trim().is_empty());
        let depth = match explicit {
            Some(digit) if self.frames.is_empty() => digit,
            Some(digit) => old + digit,
            None if has_text => first.len() - first.trim_start_matches(' ').len(),
            None => usize::MAX,
        };
        let to = new + explicit.unwrap_or(2);
        let (body, length) = block_body(&self.text[begin..], depth, to, written.contains('+'));
        if let Some(line) = self.lines.last_mut() {
            line.body = body;
        }
        self.cursor = begin + length;
        self.breaks = 1;
        Some(())
    }

    /// Reads the punctuation up to a place. `None`: there is something else.
    fn gap(&mut self, until: usize) -> Option<()> {
        while self.cursor < until {
            let rest = &self.text[self.cursor..until];
            let at = self.cursor;
            let first = rest.chars().next()?;
            let is_single = rest[first.len_utf8()..].chars().next().or_else(|| self.text[until..].chars().next());
            let is_single = is_single.is_none_or(|c| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '{' | '}'));
            let in_flow = self.frames.last().is_some_and(|frame| frame.shape != Shape::Block);
            let inner = self.node_indent();
            let outer = self.frames.last().map_or(0, |frame| frame.indent);
            match first {
                '\n' => self.breaks += 1,
                ' ' | '\t' => {}
                '#' => {
                    self.comment(rest);
                    continue;
                }
                '-' | '.' if self.column(at) == 0 && (rest.starts_with("---") || rest.starts_with("...")) => {
                    self.push(TokenKind::Marker, rest[..3].to_owned(), at, 0);
                    self.cursor += 3;
                    continue;
                }
                '%' if self.column(at) == 0 => {
                    let line = rest.split('\n').next().unwrap_or(rest);
                    self.push(TokenKind::Marker, line.trim_end().to_owned(), at, 0);
                    self.cursor += line.len();
                    continue;
                }
                '-' if is_single => self.push(TokenKind::Item, "-".to_owned(), at, outer),
                '?' if is_single => {
                    self.push(TokenKind::Item, "?".to_owned(), at, if in_flow { inner } else { outer });
                    self.frames.last_mut()?.explicit = true;
                }
                ':' if in_flow => self.push(TokenKind::FlowColon, ":".to_owned(), at, inner),
                ':' => self.push(TokenKind::BlockColon, ":".to_owned(), at, outer),
                ',' => self.push(TokenKind::Comma, ",".to_owned(), at, inner),
                '&' | '!' => {
                    let end = rest.find(|c: char| c.is_whitespace() || (in_flow && matches!(c, ',' | '[' | ']' | '{' | '}')));
                    let text = &rest[..end.unwrap_or(rest.len())];
                    self.push(TokenKind::Property, text.to_owned(), at, inner);
                    self.cursor += text.len();
                    continue;
                }
                _ => return None,
            }
            self.cursor += first.len_utf8();
        }
        Some(())
    }

    fn comment(&mut self, rest: &str) {
        let written = rest.split('\n').next().unwrap_or(rest);
        let column = self.column(self.cursor);
        let before = &self.text[..self.cursor];
        let gap = before.len() - before.trim_end_matches([' ', '\t']).len();
        let text = written.trim_end().to_owned();
        if self.breaks == 0 {
            if let Some(line) = self.lines.last_mut() {
                line.comment = Some(Comment { text, column, gap, around: vec![] });
            }
        } else {
            let block = self.frames.iter().rev().filter(|frame| frame.shape == Shape::Block);
            let mut around: Vec<_> = block.map(|frame| (frame.column, frame.indent)).collect();
            if self.frames.last().is_some_and(|frame| frame.shape != Shape::Block) {
                around.insert(0, (column, self.node_indent()));
            }
            let after_gap = self.breaks > 1 && !self.lines.is_empty();
            let comment = Some(Comment { text, column, gap, around });
            self.lines.push(Line { column, after_gap, comment, ..Line::default() });
        }
        self.breaks = 0;
        self.cursor += written.len();
        // What follows a comment begins a line; the line end itself is read with the rest.
    }
}

/// The lines of a block scalar, indented by `to` instead of `depth`, and how many bytes of the text they are. Empty lines after
/// the text belong to it only where they are kept.
fn block_body(text: &str, depth: usize, to: usize, keeps_empty: bool) -> (String, usize) {
    let (mut body, mut end, mut last) = (String::new(), 0, (0, 0));
    for line in text.split_inclusive('\n') {
        let words = line.trim_end_matches('\n');
        let blanks = words.len() - words.trim_start_matches(' ').len();
        let is_empty = blanks == words.len();
        if !is_empty && blanks < depth {
            break;
        }
        end += line.len();
        if blanks > depth || !is_empty {
            body.extend(std::iter::repeat_n(' ', to));
            body += &words[depth..];
        }
        body.push('\n');
        if !is_empty || blanks > depth {
            last = (body.len(), end);
        }
    }
    if !keeps_empty {
        body.truncate(last.0);
        end = last.1;
    }
    (body, end)
}

/// The first of some characters that is not within an anchor, a tag or a comment.
fn find(text: &str, wanted: &[char]) -> Option<usize> {
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        match next {
            next if wanted.contains(&next) => return Some(at),
            '#' => at += text[at..].find('\n')?,
            '&' | '!' => at += text[at..].find([' ', '\t', '\n'])?,
            next => at += next.len_utf8(),
        }
    }
    None
}
