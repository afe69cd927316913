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

#[global_allocator]
static HEAP: Heap = Heap(UnsafeCell::new(State {
    free: [ptr::null_mut(); SIZES],
    next: 0,
    end: 0,
}));

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
            let grown = core::arch::wasm32::memory_grow(0, pages);
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
