#include "store.hpp"

#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

#include <zkrecipes/error.hpp>
#include <zkrecipes/read_node.hpp>

namespace key_value {

namespace {

using namespace std::chrono_literals;
using zkrecipes::Errc;
using zkrecipes::Error;
using zkrecipes::Transaction;

// A client has gone elsewhere by then.
constexpr auto kPatience = 5s;

std::optional<long long> number_in(const std::string& text) {
    long long out = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(out) : std::nullopt;
}

/// The value after the write; empty: it cannot be done.
std::optional<std::string> next_value(const Request& request, const std::optional<std::string>& before) {
    if (request.verb == "put") return request.text;
    const auto value = number_in(before.value_or("0")), amount = number_in(request.text);
    long long sum = 0;
    if (!value || !amount || __builtin_add_overflow(*value, *amount, &sum)) return {};
    return std::to_string(sum);
}

/// Commits; true also when `harmless` says that it had been done before.
void commit(Transaction& transaction, Errc harmless) {
    try {
        if (!transaction.try_commit_until(kPatience)) throw Error(Errc::unreachable, "commit", "");
    } catch (const Error& error) {
        if (error.errc() != harmless) throw;
    }
}

}  // namespace

Store::Store(zkrecipes::Session& session, std::string root, zkrecipes::Grant leadership)
    : session_(session), root_(std::move(root)), leadership_(std::move(leadership)) {}

void Store::prepare() {
    for (const char* const directory : {"/data", "/clients"}) {
        Transaction transaction = guarded(session_, leadership_);
        transaction.create(root_ + directory, "");
        commit(transaction, Errc::node_exists);
    }
}

std::string Store::answer(const Request& request) {
    if (request.verb == "hello") return hello(request);
    if (request.verb == "bye") return bye(request);
    return request.is_write() ? write(request) : get(request);
}

std::string Store::hello(const Request& request) {
    Transaction transaction = guarded(session_, leadership_);
    transaction.create(record_path(request), "0 ");
    commit(transaction, Errc::node_exists);
    return "ok";
}

// A write of this client that arrives later finds no record, and is refused. If a client ends without "bye", its record
// stays. A service with many clients would let its leader remove records that are older than a day. Then a client must
// not send a write again after more than a day.
std::string Store::bye(const Request& request) {
    Transaction transaction = guarded(session_, leadership_);
    transaction.remove(record_path(request));
    commit(transaction, Errc::no_node);
    return "ok";
}

std::string Store::get(const Request& request) const {
    const auto node = zkrecipes::read_node(session_, data_path(request), leadership_, kPatience);
    return node ? "ok " + node->data : "none";
}

// [write]
std::string Store::write(const Request& request) {
    const std::lock_guard one_at_a_time(writing_);
    const auto record = zkrecipes::read_node(session_, record_path(request), leadership_, kPatience);
    if (!record) return "refused unknown client";
    const auto space = record->data.find(' ');
    const std::uint64_t last = std::stoull(record->data.substr(0, space));
    if (request.number == last) return record->data.substr(space + 1);  // it has happened; the answer was lost
    if (request.number < last) return "refused out of order";

    const auto node = zkrecipes::read_node(session_, data_path(request), leadership_, kPatience);
    const auto value = next_value(request, node ? std::optional(node->data) : std::nullopt);
    if (!value) return "refused not a number";
    const std::string answer = "ok " + *value;

    Transaction transaction = guarded(session_, leadership_);
    node ? transaction.set(data_path(request), *value) : transaction.create(data_path(request), *value);
    transaction.set(record_path(request), std::to_string(request.number) + " " + answer);
    // lock_lost: nothing was written; the client asks the next leader. outcome_unknown: the client asks again, too. If
    // this process still leads then, the read above comes after this transaction on the same session, and sees it.
    if (!transaction.try_commit_until(kPatience)) return "retry no server answers";
    return answer;
}
// [/write]

std::string peek(zkrecipes::Session& session, const std::string& root, const Request& request) {
    const auto node = zkrecipes::read_node(session, root + "/data/" + request.key, zkrecipes::Fresh::no, kPatience);
    return node ? "ok " + node->data : "none";
}

}  // namespace key_value
