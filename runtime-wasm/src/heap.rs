//! The module's allocator: free lists of blocks of powers of two.
//!
//! The standard allocator is larger than all rules of this crate. This one keeps a list of free
//! blocks for each size, takes new blocks from the end of memory, and never gives memory back: the
//! runtime of a page allocates little, and the same sizes again and again.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr;

/// The smallest block: large enough for a list's link, and aligned for every type.
const SMALLEST: u32 = 4;
const SIZES: usize = 28;
/// Pages and sizes are multiples of it, so every block is aligned to it.
const ALIGNMENT: usize = 16;
const PAGE: usize = 65_536;

struct Heap(UnsafeCell<State>);

struct State {
    /// The first free block of each size; a free block begins with a link to the next.
    free: [*mut u8; SIZES],
    /// The memory from `next` to `end` was never handed out.
    next: usize,
    end: usize,
}

// SAFETY: the module is compiled without threads.
#[expect(
    unsafe_code,
    reason = "a global allocator must be shared, and there is one thread"
)]
unsafe impl Sync for Heap {}

impl Heap {
    const fn new() -> Self {
        Self(UnsafeCell::new(State {
            free: [ptr::null_mut(); SIZES],
            next: 0,
            end: 0,
        }))
    }
}

#[cfg(target_arch = "wasm32")]
#[global_allocator]
static HEAP: Heap = Heap::new();

#[cfg(target_arch = "wasm32")]
use core::arch::wasm32::memory_grow;
#[cfg(not(target_arch = "wasm32"))]
use tests::memory_grow;

/// The index of a block's list: the block's size is 2 to the power of this plus [`SMALLEST`].
fn class(layout: Layout) -> usize {
    let size = layout.size().max(layout.align()).max(1 << SMALLEST);
    (usize::BITS - (size - 1).leading_zeros() - SMALLEST) as usize
}

#[expect(unsafe_code, reason = "an allocator hands out raw memory")]
// SAFETY: a block is handed out once until it is freed: it leaves its list or lies beyond all
// others. Blocks are aligned to 16 bytes, and a larger alignment gets none.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > ALIGNMENT {
            return ptr::null_mut();
        }
        let class = class(layout);
        // SAFETY: nothing else runs while this function does.
        let state = unsafe { &mut *self.0.get() };
        let Some(head) = state.free.get_mut(class) else {
            return ptr::null_mut();
        };
        if !head.is_null() {
            let block = *head;
            // SAFETY: a free block holds the link to the next one.
            *head = unsafe { *block.cast() };
            return block;
        }
        let size = 1 << (class as u32 + SMALLEST);
        if size > state.end - state.next {
            let pages = size.div_ceil(PAGE);
            let grown = memory_grow::<0>(pages);
            if grown == usize::MAX {
                return ptr::null_mut();
            }
            state.next = grown * PAGE;
            state.end = state.next + pages * PAGE;
        }
        let block = state.next;
        state.next += size;
        block as *mut u8
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: nothing else runs while this function does, and the block is
        // at least as large as a link.
        unsafe {
            if let Some(head) = (*self.0.get()).free.get_mut(class(layout)) {
                *block.cast() = *head;
                *head = block;
            }
        }
    }
}

/// On the machine itself, so that Miri can look: `cargo xtask miri`.
#[cfg(test)]
#[cfg(not(target_arch = "wasm32"))]
#[expect(unsafe_code, reason = "what an allocator hands out is raw memory")]
mod tests {
    use std::cell::Cell;
    use std::slice;

    use super::*;

    thread_local! {
        /// How many pages this test may still take.
        static LEFT: Cell<usize> = const { Cell::new(64) };
    }

    /// Stands for the instruction: returns the number of the first new page.
    pub(super) fn memory_grow<const MEMORY: u32>(pages: usize) -> usize {
        let Some(left) = LEFT.get().checked_sub(pages) else {
            return usize::MAX;
        };
        LEFT.set(left);
        let layout = Layout::from_size_align(pages * PAGE, PAGE).unwrap();
        // SAFETY: there is at least one page.
        let memory = unsafe { std::alloc::alloc(layout) };
        memory.expose_provenance() / PAGE
    }

    /// A block in use, full of one byte.
    struct Block {
        at: *mut u8,
        layout: Layout,
        byte: u8,
    }

    impl Block {
        fn take(heap: &Heap, layout: Layout, byte: u8) -> Self {
            // SAFETY: no size is 0.
            let at = unsafe { heap.alloc(layout) };
            assert!(!at.is_null());
            assert_eq!(at.addr() % layout.align(), 0);
            // SAFETY: the block has this size.
            unsafe { at.write_bytes(byte, layout.size()) };
            Self { at, layout, byte }
        }

        fn grow(&mut self, heap: &Heap, size: usize) {
            // SAFETY: it is a block of this heap.
            self.at = unsafe { heap.realloc(self.at, self.layout, size) };
            assert!(!self.at.is_null());
            let (kept, align) = (self.layout.size().min(size), self.layout.align());
            self.layout = Layout::from_size_align(size, align).unwrap();
            self.assert_keeps(kept);
            // SAFETY: the block has this size.
            unsafe { self.at.write_bytes(self.byte, size) };
        }

        fn assert_keeps(&self, length: usize) {
            // SAFETY: the block was written as a whole.
            let bytes = unsafe { slice::from_raw_parts(self.at, length) };
            assert!(bytes.iter().all(|byte| *byte == self.byte));
        }

        fn free(self, heap: &Heap) {
            self.assert_keeps(self.layout.size());
            // SAFETY: it is a block of this heap, and nobody uses it any more.
            unsafe { heap.dealloc(self.at, self.layout) };
        }
    }

    #[test]
    fn no_block_touches_another_one_whatever_is_taken_grown_and_freed() {
        let heap = Heap::new();
        let mut blocks: Vec<Block> = Vec::new();
        // Xorshift (Marsaglia): the same numbers each time.
        let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
        let mut below = |limit: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            usize::try_from(seed % limit as u64).unwrap()
        };
        let steps = if cfg!(miri) { 400 } else { 20_000 };
        for step in 0..steps {
            let bits = 1 + below(12);
            let size = 1 + below(1 << bits);
            let byte = u8::try_from(step % 251).unwrap();
            match below(5) {
                0..=2 => {
                    let layout = Layout::from_size_align(size, 1 << below(5)).unwrap();
                    blocks.push(Block::take(&heap, layout, byte));
                }
                3 if !blocks.is_empty() => {
                    let index = below(blocks.len());
                    blocks[index].grow(&heap, size);
                }
                _ if !blocks.is_empty() => {
                    let index = below(blocks.len());
                    blocks.swap_remove(index).free(&heap);
                }
                _ => {}
            }
            if blocks.len() > 60 {
                blocks.swap_remove(0).free(&heap);
            }
        }
        for block in blocks {
            block.free(&heap);
        }
    }

    #[test]
    fn a_freed_block_is_handed_out_again_and_memory_that_ends_is_said() {
        let heap = Heap::new();
        let layout = Layout::from_size_align(100, 8).unwrap();
        let first = Block::take(&heap, layout, 1);
        let at = first.at;
        first.free(&heap);
        assert_eq!(Block::take(&heap, layout, 2).at, at);
        // SAFETY: no size is 0.
        unsafe {
            let too_aligned = Layout::from_size_align(16, 2 * ALIGNMENT).unwrap();
            assert!(heap.alloc(too_aligned).is_null());
            let too_large = Layout::from_size_align(65 * PAGE, 1).unwrap();
            assert!(heap.alloc(too_large).is_null());
            let larger_than_all = Layout::from_size_align(1 << 40, 1).unwrap();
            assert!(heap.alloc(larger_than_all).is_null());
        }
        // It still works.
        Block::take(&heap, layout, 3);
    }
}
