#include "chaos/key_value_trial.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <fstream>
#include <random>
#include <utility>

#include <zkrecipes/testenv/raw_client.hpp>

#include "client.hpp"
#include "testenv/src/keeper.hpp"

namespace zkrecipes::chaos {

namespace {

using namespace std::chrono_literals;
using boost::asio::ip::tcp;
using testenv::internal::Keeper;

constexpr const char* kElection = "/kv/leader";
constexpr auto kPatience = 60s;  // of a client

/// Nobody else uses the address. Below those ports that the kernel gives to connections, and not taken by somebody on
/// all addresses.
std::vector<std::string> free_endpoints(const std::string& address, int count) {
    boost::asio::io_context io;
    std::vector<std::string> out;
    for (unsigned short port = 20001; static_cast<int>(out.size()) < count; ++port) {
        try {
            const tcp::acceptor free(io, tcp::endpoint(boost::asio::ip::make_address(address), port));
            out.push_back(address + ":" + std::to_string(port));
        } catch (const boost::system::system_error& error) {
            if (error.code() != boost::asio::error::address_in_use) throw;
        }
    }
    return out;
}

}  // namespace

KeyValueProcesses::KeyValueProcesses(std::string hosts, const std::string& address, testenv::RawClient& observer)
    : hosts_(std::move(hosts)), observer_(observer), addresses_(free_endpoints(address, kSize)) {}

KeyValueProcesses::~KeyValueProcesses() {
    for (int i = 0; i < kSize; ++i) {
        if (pids_[i] > 0) kill(i);
    }
}

// By the keeper of the servers, which outlives whoever kills us, and ends them then.
void KeyValueProcesses::start(int i, const std::string& program, const std::vector<std::string>& environment) {
    Keeper::Spawn what;
    what.argv = {program, hosts_, addresses_[i], "800"};
    what.environment = environment;
    what.directory = Keeper::instance().directory();
    what.log = "/dev/null";
    pids_[i] = Keeper::instance().spawn(what);
}

void KeyValueProcesses::kill(int i) {
    signal(i, SIGKILL);
    wait_end(i);
}

void KeyValueProcesses::signal(int i, int number) { ::kill(pids_[i], number); }

bool KeyValueProcesses::is_stopped(int i) const {
    std::ifstream file("/proc/" + std::to_string(pids_[i]) + "/stat");
    std::string text;
    std::getline(file, text);
    const auto end = text.rfind(')');  // the name before it may contain anything
    return end != std::string::npos && end + 2 < text.size() && text[end + 2] == 'T';
}

int KeyValueProcesses::wait_end(int i) {
    const int status = Keeper::instance().reap(std::exchange(pids_[i], 0));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::vector<std::string> KeyValueProcesses::ids() {
    auto nodes = observer_.children(kElection).value_or(std::vector<std::string>());
    const auto number = [](const std::string& node) {
        return node.substr(node.size() - std::min<std::size_t>(10, node.size()));
    };
    std::sort(nodes.begin(), nodes.end(), [&](const auto& a, const auto& b) { return number(a) < number(b); });
    std::vector<std::string> out;
    for (const auto& node : nodes) {
        if (const auto content = observer_.get(std::string(kElection) + "/" + node)) out.push_back(content->data);
    }
    return out;
}

int KeyValueProcesses::leader() {
    const auto all = ids();
    const auto found = all.empty() ? addresses_.end() : std::find(addresses_.begin(), addresses_.end(), all.front());
    return found == addresses_.end() ? -1 : static_cast<int>(found - addresses_.begin());
}

bool KeyValueProcesses::is_candidate(int i) {
    const auto all = ids();
    return std::find(all.begin(), all.end(), addresses_[i]) != all.end();
}

std::size_t KeyValueProcesses::candidates() { return ids().size(); }

std::int64_t KeyValueProcesses::writes() {
    std::int64_t sum = 0;
    for (const auto& key : observer_.children("/kv/data").value_or(std::vector<std::string>())) {
        if (const auto stat = observer_.exists("/kv/data/" + key)) sum += stat->version;
    }
    return sum;
}

KeyValueLoad::KeyValueLoad(std::vector<std::string> addresses, int clients, int keys)
    : addresses_(std::move(addresses)), keys_(keys) {
    for (int i = 0; i < clients; ++i) {
        threads_.emplace_back([this, i](const std::stop_token& stop) { run(stop, i); });
    }
}

void KeyValueLoad::run(const std::stop_token& stop, int client) try {
    std::mt19937 random(static_cast<unsigned>(client));
    key_value::Client service(addresses_, 400ms);
    while (begin(stop)) {
        const std::string key = key_of(static_cast<int>(random() % static_cast<unsigned>(keys_)));
        note(key, service.add(key, 1, kPatience));
    }
    service.leave(kPatience);
} catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    if (complaint_.empty()) complaint_ = error.what();
    --under_way_;
    changed_.notify_all();
}

bool KeyValueLoad::begin(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] { return !paused_; });
    if (stop.stop_requested()) return false;
    ++under_way_;
    return true;
}

void KeyValueLoad::pause() {
    std::unique_lock lock(mutex_);
    paused_ = true;
    changed_.wait(lock, [&] { return under_way_ == 0; });
}

void KeyValueLoad::note(const std::string& key, long long value) {
    const std::lock_guard lock(mutex_);
    ++acknowledged_;
    --under_way_;
    changed_.notify_all();
    if (!seen_[key].insert(value).second && complaint_.empty()) {
        complaint_ = "A WRITE IS LOST: " + key + " was " + std::to_string(value) + " after two writes";
    }
}

std::size_t KeyValueLoad::acknowledged() {
    const std::lock_guard lock(mutex_);
    return acknowledged_;
}

std::string KeyValueLoad::complaint() {
    const std::lock_guard lock(mutex_);
    return complaint_;
}

void KeyValueLoad::stop() {
    for (auto& thread : threads_) thread.request_stop();
    threads_.clear();
}

std::string KeyValueLoad::check_sums() {
    if (!complaint().empty()) return complaint();
    key_value::Client service(addresses_);
    for (const auto& [key, values] : seen_) {
        const std::string says = service.get(key, kPatience).value_or("nothing");
        const std::string expected = std::to_string(values.size());
        if (says != expected) return key + " is " + says + " after " + expected + " acknowledged writes";
    }
    return {};
}

}  // namespace zkrecipes::chaos
