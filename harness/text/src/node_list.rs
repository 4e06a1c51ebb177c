//! Lists of nodes as clusters have them: `n[1-3,07],rack[1-2]b[01-04]`.

/// More than the largest machine has: a list that says so is not one.
const MOST: usize = 100_000;

/// Every node of a list, in order. What cannot be read stays as it is.
pub fn expand(list: &str) -> Vec<String> {
    let list = list.trim();
    if list.is_empty() || ["(null)", "None", "None assigned", "N/A"].contains(&list) {
        return Vec::new();
    }
    let mut nodes = Vec::new();
    for part in parts(list) {
        match expanded(part) {
            Some(mut some) if nodes.len() + some.len() <= MOST => nodes.append(&mut some),
            _ => nodes.push(part.to_owned()),
        }
    }
    nodes
}

/// Splits at commas outside of brackets.
fn parts(list: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let outside = |c: char| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    list.split(outside).map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// `rack[1-2]b[01-04]`; `None`: it cannot be read.
fn expanded(part: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = part.split_once('[') else { return Some(vec![part.to_owned()]) };
    let (ranges, after) = rest.split_once(']')?;
    let (mut nodes, after) = (Vec::new(), expanded(after)?);
    for range in ranges.split(',') {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let width = low.len();
        let (low, high) = (low.parse::<usize>().ok()?, high.parse::<usize>().ok()?);
        if high < low || (high - low + 1).checked_mul(after.len())? > MOST {
            return None;
        }
        for number in low..=high {
            nodes.extend(after.iter().map(|after| format!("{before}{number:0width$}{after}")));
        }
    }
    Some(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_of_a_list_is_named() {
        let rows: [(&str, &[&str]); 12] = [
            ("n1", &["n1"]),
            ("n[1-3]", &["n1", "n2", "n3"]),
            ("n[1-2,07]", &["n1", "n2", "n07"]),
            ("n[08-11]", &["n08", "n09", "n10", "n11"]),
            ("a, b[1-2]-x,,c", &["a", "b1-x", "b2-x", "c"]),
            ("rack[1-2]b[01-02]", &["rack1b01", "rack1b02", "rack2b01", "rack2b02"]),
            ("", &[]),
            ("None assigned", &[]),
            ("(null)", &[]),
            ("n[3-1]", &["n[3-1]"]),
            ("n[1-99999999]", &["n[1-99999999]"]),
            ("n[1", &["n[1"]),
        ];
        for (list, nodes) in rows {
            assert_eq!(expand(list), nodes, "{list}");
        }
    }
}
