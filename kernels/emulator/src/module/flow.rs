//! Where lanes that part at a branch meet again: the branch's immediate post-dominator.
//!
//! Cooper, Harvey and Kennedy's iteration ("A Simple, Fast Dominance Algorithm") on the reversed graph.

use super::program::{Block, End, NONE};

/// Fills in `join` of every branch.
pub(crate) fn find_joins(blocks: &mut [Block]) {
    let join = post_dominators(&blocks.iter().map(|block| successors(&block.end)).collect::<Vec<_>>());
    for (block, found) in blocks.iter_mut().zip(join) {
        match &mut block.end {
            End::Branch { join, .. } | End::Switch { join, .. } => *join = found,
            _ => {}
        }
    }
}

fn successors(end: &End) -> Vec<u32> {
    match end {
        End::Jump(target) => vec![*target],
        End::Branch { target, next, .. } => vec![*target, *next],
        End::Switch { targets, .. } => targets.clone(),
        End::Call(call) => vec![call.next],
        End::Barrier(barrier) => vec![barrier.next],
        End::Exit | End::Return | End::Trap => vec![],
    }
}

/// The immediate post-dominator of each block, or [`NONE`] when only the function's end is one.
fn post_dominators(successors: &[Vec<u32>]) -> Vec<u32> {
    let exit = successors.len();
    let mut predecessors = vec![Vec::new(); exit + 1];
    for (block, targets) in successors.iter().enumerate() {
        for &target in targets {
            predecessors[target as usize].push(block);
        }
        if targets.is_empty() {
            predecessors[exit].push(block);
        }
    }

    // Post-order of the reversed graph. A loop without an end is not reached from there: it joins nowhere.
    let mut order = vec![usize::MAX; exit + 1];
    let mut finished = Vec::with_capacity(exit + 1);
    let mut seen = vec![false; exit + 1];
    let mut path = vec![(exit, 0)];
    seen[exit] = true;
    while let Some((block, edge)) = path.last_mut() {
        match predecessors[*block].get(*edge) {
            Some(&before) => {
                *edge += 1;
                if !seen[before] {
                    seen[before] = true;
                    path.push((before, 0));
                }
            }
            None => {
                order[*block] = finished.len();
                finished.push(*block);
                path.pop();
            }
        }
    }

    let mut immediate = vec![usize::MAX; exit + 1];
    immediate[exit] = exit;
    let mut changed = true;
    while changed {
        changed = false;
        for &block in finished.iter().rev().skip(1) {
            let own = [exit as u32];
            let targets = if successors[block].is_empty() { &own[..] } else { &successors[block][..] };
            let mut found = usize::MAX;
            for target in targets.iter().map(|&target| target as usize) {
                if immediate[target] == usize::MAX {
                    continue;
                }
                found = if found == usize::MAX { target } else { meet(&immediate, &order, found, target) };
            }
            if immediate[block] != found {
                immediate[block] = found;
                changed = true;
            }
        }
    }
    immediate.truncate(exit);
    immediate.into_iter().map(|block| if block >= exit { NONE } else { block as u32 }).collect()
}

fn meet(immediate: &[usize], order: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while order[a] < order[b] {
            a = immediate[a];
        }
        while order[b] < order[a] {
            b = immediate[b];
        }
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(successors: &[&[u32]], expected: &[u32]) {
        let successors: Vec<_> = successors.iter().map(|targets| targets.to_vec()).collect();
        assert_eq!(post_dominators(&successors), expected);
    }

    #[test]
    fn branches_join() {
        check(&[&[1, 2], &[3], &[3], &[]], &[3, 3, 3, NONE]);
        check(&[&[1, 2], &[2], &[]], &[2, 2, NONE]);
    }

    #[test]
    fn a_loop_joins_behind_its_end() {
        check(&[&[1], &[2, 3], &[1], &[]], &[1, 3, 1, NONE]);
    }

    #[test]
    fn early_exits_join_nowhere() {
        check(&[&[1, 2], &[], &[]], &[NONE, NONE, NONE]);
        check(&[&[1, 2], &[], &[3, 4], &[4], &[]], &[NONE, NONE, 4, 4, NONE]);
    }

    #[test]
    fn an_endless_loop_joins_nowhere() {
        check(&[&[1, 2], &[1], &[]], &[2, NONE, NONE]);
        check(&[&[0]], &[NONE]);
    }
}
