//! Patterns that need no engine: texts, choices and one "the rest" at the end, as in
//! `/app(/|$)(.*)`. Nearly all paths in front of a rewrite are of this kind.

use std::ops::Range;

use regex_syntax::ast::{
    AssertionKind, Ast, Group, GroupKind, Literal, LiteralKind, Repetition, RepetitionKind,
    parse::Parser,
};

/// The most groups of such a pattern.
const GROUPS: usize = 4;
/// The most places where such a pattern has a choice: each doubles what a path may cost.
const CHOICES: usize = 4;
/// Where nothing was matched.
const NOWHERE: usize = usize::MAX;

/// Begin and end of each group.
type Slots = [usize; 2 * GROUPS];

/// A pattern as steps from the start of a path. It finds what the regex crate finds, anchored at the
/// start, without regard to case and without Unicode: the same matches with the same groups.
#[derive(Debug)]
pub(super) struct Direct(Box<[Step]>);

/// What groups matched, from the first one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spans(Slots);

#[derive(Debug)]
enum Step {
    /// These bytes, letters in any case.
    Text(Box<[u8]>),
    /// One byte that ends no line.
    Any,
    /// All up to the end of the line. Nothing after it can fail but [`Step::End`], which would fail
    /// for less as well, so there is nothing to try again.
    Rest,
    /// The path ends here.
    End,
    /// A group begins or ends here.
    Save(usize),
    /// What follows, and if that does not match, from another step on.
    Either(usize),
    /// On from another step; always a later one.
    Jump(usize),
}

impl Direct {
    /// The steps of `^text`; none where it has anything that these cannot do.
    pub(super) fn new(text: &str) -> Option<Self> {
        let parsed = Parser::new().parse(&format!("^{text}")).ok()?;
        // An alternative at the very top would have an anchor of its own, or none.
        let Ast::Concat(parts) = &parsed else {
            return None;
        };
        let (Ast::Assertion(anchor), rest) = parts.asts.split_first()? else {
            return None;
        };
        let mut steps = Steps::default();
        rest.iter().try_for_each(|part| steps.add(part))?;
        let anchored = anchor.kind == AssertionKind::StartLine;
        (anchored && steps.ends_with_rests()).then(|| Direct(steps.steps.into()))
    }

    /// What the groups match, if the pattern matches at the start of `path`.
    pub(super) fn find(&self, path: &[u8]) -> Option<Spans> {
        let mut slots = [NOWHERE; 2 * GROUPS];
        self.run(0, 0, path, &mut slots).then_some(Spans(slots))
    }

    fn run(&self, mut step: usize, mut at: usize, path: &[u8], slots: &mut Slots) -> bool {
        while let Some(it) = self.0.get(step) {
            let rest = path.get(at..).unwrap_or_default();
            step += 1;
            match it {
                Step::Text(text) => {
                    let start = rest.get(..text.len());
                    if !start.is_some_and(|it| it.eq_ignore_ascii_case(text)) {
                        return false;
                    }
                    at += text.len();
                }
                Step::Any if matches!(rest.first(), None | Some(b'\n')) => return false,
                Step::Any => at += 1,
                Step::Rest => at += memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
                Step::End if !rest.is_empty() => return false,
                Step::End => {}
                Step::Save(slot) => {
                    if let Some(slot) = slots.get_mut(*slot) {
                        *slot = at;
                    }
                }
                Step::Either(other) => {
                    let before = *slots;
                    if self.run(step, at, path, slots) {
                        return true;
                    }
                    *slots = before;
                    step = *other;
                }
                Step::Jump(to) => step = *to,
            }
        }
        true
    }
}

impl Spans {
    /// Where a group matched, by its number from 1 on.
    pub(super) fn get(&self, group: usize) -> Option<Range<usize>> {
        let first = group.checked_sub(1)?.checked_mul(2)?;
        let (start, end) = (*self.0.get(first)?, *self.0.get(first + 1)?);
        (start != NOWHERE && end != NOWHERE).then_some(start..end)
    }
}

/// Steps that are being made.
#[derive(Default)]
struct Steps {
    steps: Vec<Step>,
    /// The last place that is jumped to: what comes there is a step of its own.
    target: usize,
    choices: usize,
}

impl Steps {
    /// None for what cannot be done directly.
    fn add(&mut self, part: &Ast) -> Option<()> {
        match part {
            Ast::Empty(_) => {}
            Ast::Literal(literal) => self.byte(byte(literal)?),
            Ast::Dot(_) => self.steps.push(Step::Any),
            Ast::Assertion(it) if it.kind == AssertionKind::EndLine => self.steps.push(Step::End),
            Ast::Concat(it) => it.asts.iter().try_for_each(|part| self.add(part))?,
            Ast::Group(group) => self.group(group)?,
            Ast::Alternation(it) => self.alternatives(&it.asts)?,
            Ast::Repetition(it) if it.greedy => self.repetition(it)?,
            _ => return None,
        }
        Some(())
    }

    fn byte(&mut self, byte: u8) {
        let behind_target = self.steps.len() > self.target;
        match self.steps.last_mut() {
            Some(Step::Text(text)) if behind_target => *text = [&**text, &[byte]].concat().into(),
            _ => self.steps.push(Step::Text([byte].into())),
        }
    }

    fn group(&mut self, group: &Group) -> Option<()> {
        let number = match &group.kind {
            GroupKind::CaptureIndex(number) => *number,
            GroupKind::CaptureName { name, .. } => name.index,
            GroupKind::NonCapturing(flags) if flags.items.is_empty() => {
                return self.add(&group.ast);
            }
            GroupKind::NonCapturing(_) => return None,
        };
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        if index >= GROUPS {
            return None;
        }
        self.steps.push(Step::Save(2 * index));
        self.add(&group.ast)?;
        self.steps.push(Step::Save(2 * index + 1));
        Some(())
    }

    fn repetition(&mut self, it: &Repetition) -> Option<()> {
        match (&it.op.kind, &*it.ast) {
            (RepetitionKind::ZeroOrOne, part) => {
                let choice = self.choice()?;
                self.add(part)?;
                self.here(choice);
            }
            (RepetitionKind::ZeroOrMore, Ast::Dot(_)) => self.steps.push(Step::Rest),
            (RepetitionKind::OneOrMore, Ast::Dot(_)) => {
                self.steps.extend([Step::Any, Step::Rest]);
            }
            _ => return None,
        }
        Some(())
    }

    fn alternatives(&mut self, parts: &[Ast]) -> Option<()> {
        let (last, parts) = parts.split_last()?;
        let mut ends = Vec::new();
        for part in parts {
            let choice = self.choice()?;
            self.add(part)?;
            ends.push(self.steps.len());
            self.steps.push(Step::Jump(NOWHERE));
            self.here(choice);
        }
        self.add(last)?;
        ends.into_iter().for_each(|end| self.here(end));
        Some(())
    }

    /// A choice whose other side is not known yet.
    fn choice(&mut self) -> Option<usize> {
        self.choices += 1;
        let at = self.steps.len();
        self.steps.push(Step::Either(NOWHERE));
        (self.choices <= CHOICES).then_some(at)
    }

    /// Lets a step lead to what comes next.
    fn here(&mut self, step: usize) {
        self.target = self.steps.len();
        if let Some(Step::Either(to) | Step::Jump(to)) = self.steps.get_mut(step) {
            *to = self.target;
        }
    }

    /// Whether every [`Step::Rest`] keeps what is said of it.
    fn ends_with_rests(&self) -> bool {
        let rests = self.steps.iter().enumerate();
        let mut rests = rests.filter(|(_, step)| matches!(step, Step::Rest));
        rests.all(|(mut at, _)| {
            at += 1;
            loop {
                match self.steps.get(at) {
                    None => return true,
                    Some(Step::Save(_) | Step::End) => at += 1,
                    Some(Step::Jump(to)) => at = *to,
                    Some(_) => return false,
                }
            }
        })
    }
}

/// The byte that a literal is, where it is one whatever the flags.
fn byte(literal: &Literal) -> Option<u8> {
    let plain = match literal.kind {
        LiteralKind::Verbatim | LiteralKind::Meta | LiteralKind::Superfluous => literal.c,
        _ => return None,
    };
    u8::try_from(plain).ok().filter(u8::is_ascii)
}

#[cfg(test)]
#[path = "direct_tests.rs"]
mod tests;
