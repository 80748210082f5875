#pragma once
// The spans of lock_spans.hpp in OpenTelemetry. Needs the headers of opentelemetry-cpp, which Debian 12 does not have.
#include <opentelemetry/trace/tracer.h>

#include <chrono>

#include "lock_spans.hpp"

namespace lock_spans {

// [opentelemetry]
inline void export_span(opentelemetry::trace::Tracer& tracer, const LockSpan& lock_span) {
    using SteadyTimestamp = opentelemetry::common::SteadyTimestamp;
    // OpenTelemetry takes the start from the system clock, and the length from a steady clock.
    const auto end = std::chrono::steady_clock::now();
    opentelemetry::trace::StartSpanOptions options;
    options.start_system_time = opentelemetry::common::SystemTimestamp(lock_span.start);
    options.start_steady_time = SteadyTimestamp(end - (lock_span.end - lock_span.start));
    const auto span = tracer.StartSpan(lock_span.name,
                                       {{"zookeeper.path", lock_span.path},
                                        {"zkrecipes.mode", lock_span.mode},
                                        {"zkrecipes.outcome", lock_span.outcome},
                                        {"zkrecipes.token", lock_span.token},
                                        {"zkrecipes.acquire", static_cast<std::int64_t>(lock_span.acquire)}},
                                       options);
    if (lock_span.is_error) span->SetStatus(opentelemetry::trace::StatusCode::kError, lock_span.outcome);
    opentelemetry::trace::EndSpanOptions at_end;
    at_end.end_steady_time = SteadyTimestamp(end);
    span->End(at_end);
}
// [/opentelemetry]

}  // namespace lock_spans
