// Tells AddressSanitizer and ThreadSanitizer when a fiber takes over the thread. Boost.Context does so itself only if
// it was built for that, and Debian's was not: then an exception on the stack of a fiber is reported as a use after
// scope, and ThreadSanitizer takes all fibers of a thread for one flow of control.
//
// This file is part of every program of a sanitizer build (cmake/zkrecipes_targets.cmake), and is itself compiled
// without sanitizers. It stands between the three functions of Boost.Context that change stacks and those who call
// them: the templates in our own programs, and libboost_fiber. What it hands out in place of the library's handle of a
// suspended stack is the address of a Context; nobody looks into these handles.
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/tsan_interface.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

#include "hidden_function.hpp"

namespace {

using boost::context::detail::fcontext_t;
using boost::context::detail::transfer_t;
using Entry = void (*)(transfer_t);
using OnTop = transfer_t (*)(transfer_t);

/// One stack: of a fiber, or of a thread.
struct Context {
    fcontext_t suspended_at;  // the library's handle, while it does not run
    const void* bottom;       // of a thread: known once it was left
    std::size_t size;
    void* fake_stack;  // AddressSanitizer's, while it does not run
    void* fiber;       // ThreadSanitizer's
    Entry entry;
    void* record;  // what Boost.Context keeps of a fiber: the first thing that is handed to a new stack
};

/// Needs neither constructor nor destructor: fibers run before the first and after the last of them.
struct Thread {
    Context own;
    Context* running;
    Context* left;  // from the moment that it is left until the next one runs
    bool left_for_good;
};
thread_local Thread t_thread;

/// Each call looks the thread up anew: after a change of stacks it may be another one.
__attribute__((noinline)) Thread& this_thread() {
    asm volatile("" ::: "memory");
    if (t_thread.running == nullptr) t_thread.running = &t_thread.own;
    return t_thread;
}

/// The last thing before the change.
void leave_for(Context& to, bool for_good) {
    Thread& thread = this_thread();
    Context* const from = thread.running;
    thread.left = from;
    thread.left_for_good = for_good;
    thread.running = &to;
#ifdef ZKRECIPES_ADDRESS_SANITIZER
    __sanitizer_start_switch_fiber(for_good ? nullptr : &from->fake_stack, to.bottom, to.size);
#endif
#ifdef ZKRECIPES_THREAD_SANITIZER
    if (from->fiber == nullptr) from->fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to.fiber, 0);
#endif
}

/// The first thing after it, on the new stack. Answers which stack was left.
Context& arrived(fcontext_t from_at) {
    Thread& thread = this_thread();
    Context& from = *thread.left;
    thread.left = nullptr;
    from.suspended_at = from_at;
#ifdef ZKRECIPES_ADDRESS_SANITIZER
    __sanitizer_finish_switch_fiber(thread.running->fake_stack, &from.bottom, &from.size);
#endif
    return from;
}

/// Back on a stack that was suspended. What run_on_top() answered there has been through this already.
transfer_t resumed(transfer_t transfer) {
    if (this_thread().left == nullptr) return transfer;
    return {&arrived(transfer.fctx), transfer.data};
}

void enter(transfer_t transfer) {
    Context& from = arrived(transfer.fctx);
    Context& self = *this_thread().running;
    self.record = transfer.data;
    self.entry({&from, transfer.data});
}

void end(Context& context) {
#ifdef ZKRECIPES_THREAD_SANITIZER
    __tsan_destroy_fiber(context.fiber);
#endif
    delete &context;
}

struct OnTopCall {
    OnTop function;
    void* data;
};

transfer_t run_on_top(transfer_t transfer) {
    const OnTopCall call = *static_cast<const OnTopCall*>(transfer.data);  // on the stack that was left
    Context& from = arrived(transfer.fctx);
    const bool ended = this_thread().left_for_good;
    const transfer_t result = call.function({&from, call.data});  // an exception takes the same way as the result
    if (ended) end(from);
    return result;
}

}  // namespace

extern "C" fcontext_t make_fcontext(void* top, std::size_t size, Entry entry) {
    static auto* const real_make = hidden_function<fcontext_t(void*, std::size_t, Entry)>("make_fcontext");
    auto* const context = new Context{};
    context->bottom = static_cast<const char*>(top) - size;
    context->size = size;
    context->entry = entry;
#ifdef ZKRECIPES_THREAD_SANITIZER
    context->fiber = __tsan_create_fiber(0);
#endif
    context->suspended_at = real_make(top, size, enter);
    return context;
}

extern "C" transfer_t jump_fcontext(fcontext_t const to, void* data) {
    static auto* const real_jump = hidden_function<transfer_t(fcontext_t, void*)>("jump_fcontext");
    auto& target = *static_cast<Context*>(to);
    leave_for(target, false);
    return resumed(real_jump(target.suspended_at, data));
}

extern "C" transfer_t ontop_fcontext(fcontext_t const to, void* data, OnTop function) {
    static auto* const real_ontop = hidden_function<transfer_t(fcontext_t, void*, OnTop)>("ontop_fcontext");
    auto& target = *static_cast<Context*>(to);
    OnTopCall call{function, data};
    // The last act of a fiber is to hand its own record over, for somebody else to free its stack.
    const Context& self = *this_thread().running;
    leave_for(target, self.record != nullptr && self.record == data);
    return resumed(real_ontop(target.suspended_at, &call, run_on_top));
}
