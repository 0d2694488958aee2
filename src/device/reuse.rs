//! Decides which blocks of device memory are free, and which are given back first.

/// Returns the free blocks among the launched ones. Each comes with its owner and the number of its event. The events
/// of an owner are reached in the order of their numbers. So once a block of an owner is not free, its later blocks are
/// not queried.
pub(super) fn reached<O: PartialEq, B>(
    mut launched: Vec<(u64, O, B)>,
    mut is_reached: impl FnMut(&B) -> bool,
) -> Vec<B> {
    launched.sort_unstable_by_key(|(nth, ..)| *nth);
    let (mut waits, mut free) = (Vec::new(), Vec::new());
    for (_, owner, block) in launched {
        if waits.contains(&owner) {
            continue;
        }
        if is_reached(&block) {
            free.push(block);
        } else {
            waits.push(owner);
        }
    }
    free
}

/// Returns which blocks to give back, in order, so that at most `most` of the removable ones remain. `blocks` has the
/// owner of each block, and its worth if it is removable. The most recently used block comes last.
///
/// Blocks of the least worth go first. Among equals, the blocks of the least recently active owner go first, and among
/// these the least recently used ones.
pub(super) fn surplus<O: PartialEq, W: Ord + Copy>(blocks: &[(O, Option<W>)], most: usize) -> Vec<usize> {
    let last_use = |owner: &O| blocks.iter().rposition(|(other, _)| other == owner);
    let may_go = blocks.iter().enumerate().filter_map(|(at, (owner, worth))| Some(((*worth)?, last_use(owner), at)));
    let mut may_go: Vec<_> = may_go.collect();
    may_go.sort_unstable();
    may_go.truncate(may_go.len().saturating_sub(most));
    let mut gone: Vec<usize> = may_go.into_iter().map(|(.., at)| at).collect();
    gone.sort_unstable();
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks in the order of their last use. A capital letter is a free block of that owner.
    fn blocks(order: &str) -> Vec<(char, Option<()>)> {
        order.chars().map(|char| (char.to_ascii_lowercase(), char.is_uppercase().then_some(()))).collect()
    }

    #[test]
    fn consumers_in_turn_keep_their_blocks() {
        // Two epochs at once, with room for two batches each: nothing goes, whoever takes next.
        for order in ["ABAB", "AABB", "ABaBAb", "BBAA"] {
            assert!(surplus(&blocks(order), 4).is_empty(), "{order}");
        }
    }

    #[test]
    fn the_blocks_of_the_owner_that_took_nothing_for_longest_go_first() {
        assert_eq!(surplus(&blocks("AABBB"), 3), [0, 1]);
        assert_eq!(surplus(&blocks("AABBB"), 2), [0, 1, 2], "then the others', the one used first before the rest");
        // The block that `b` used last is with the step. `a` has used no block since, although all free blocks of `b`
        // are older.
        assert_eq!(surplus(&blocks("BBAAb"), 2), [2, 3]);
        assert_eq!(surplus(&blocks("CAAB"), 2), [0, 1]);
    }

    #[test]
    fn blocks_in_use_stay_and_do_not_count() {
        assert_eq!(surplus(&blocks("aaaaAAA"), 2), [4]);
        assert!(surplus(&blocks("aaaa"), 0).is_empty());
        assert_eq!(surplus(&blocks("AbA"), 0), [0, 2]);
        assert!(surplus(&blocks("AbA"), 9).is_empty());
    }

    #[test]
    fn what_is_worth_least_goes_first() {
        let blocks = [('a', Some(true)), ('b', Some(false)), ('a', None), ('b', Some(true)), ('b', Some(false))];
        assert_eq!(surplus(&blocks, 3), [1]);
        assert_eq!(surplus(&blocks, 2), [1, 4]);
        assert_eq!(surplus(&blocks, 1), [0, 1, 4]);
    }

    #[test]
    fn no_owner_is_asked_again_after_a_block_that_is_not_free() {
        let launched = vec![(4, 'a', 3), (1, 'a', 0), (2, 'b', 1), (3, 'a', 2), (5, 'b', 4), (6, 'c', 5)];
        let mut asked = Vec::new();
        let free = reached(launched, |block| {
            asked.push(*block);
            !matches!(block, 1 | 3)
        });
        assert_eq!(free, [0, 2, 5]);
        assert_eq!(asked, [0, 1, 2, 3, 5]);
    }
}
