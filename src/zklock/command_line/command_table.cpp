#include "zklock/command_line/command_table.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace zkrecipes::zklock {
namespace {

constexpr const char* kLockAndCommand =
    "\nLOCK     the lock: an absolute ZooKeeper path, such as /locks/deploy\n"
    "COMMAND  runs under the lock; everything after LOCK belongs to the command\n";
constexpr const char* kElectionAndCommand =
    "\nELECTION the election: an absolute ZooKeeper path\n"
    "COMMAND  runs while this candidate leads; everything after ELECTION belongs to the command\n";

/// The number of characters to insert, delete, replace or swap with the next one.
std::size_t distance(const std::string& a, const std::string& b) {
    std::vector<std::size_t> older, last, row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        older = std::exchange(last, row);
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t differs = a[i - 1] == b[j - 1] ? 0 : 1;
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + differs});
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) row[j] = std::min(row[j], older[j - 2] + 1);
        }
    }
    return row.back();
}

/// Replaces repeated slashes by one and removes a slash at the end.
std::string tidy(const std::string& path) {
    std::string result;
    for (const char c : path) {
        if (c != '/' || !result.ends_with('/')) result.push_back(c);
    }
    if (result.size() > 1 && result.ends_with('/')) result.pop_back();
    return result;
}

}  // namespace

const std::vector<Word> kWords = {
    {"run", Command::run,
     "zklock [run] [OPTIONS] LOCK [--] COMMAND [ARG...]\n"
     "zklock [run] [OPTIONS] LOCK -c 'SHELL STRING'\n"
     "zklock [run] [OPTIONS] -L LOCK[:shared] -L LOCK... -- COMMAND [ARG...]\n",
     kLockAndCommand, "Runs a command under a lock (the word may be left out)."},
    {"hold", Command::hold, "zklock hold [OPTIONS] (LOCK | -L LOCK...)\n", "",
     "Holds a lock until stdin ends or a signal arrives."},
    {"elect", Command::elect, "zklock elect [OPTIONS] ELECTION [--] COMMAND [ARG...]\n", kElectionAndCommand,
     "Runs a command while this candidate is the leader."},
    {"status", Command::status, "zklock status [--watch] [--json] LOCK\n", "",
     "Shows who holds a lock and who waits for it. Exits with 0 if free, 75 if held."},
    {"ls", Command::ls, "zklock ls [--json] [PREFIX]\n", "",
     "Lists the locks at and below a path that have a holder or a waiter."},
    {"wait", Command::wait, "zklock wait [-w DURATION] LOCK\n", "",
     "Waits until nobody holds a lock, without taking it."},
    {"break", Command::break_lock, "zklock break LOCK (--holder | --node NODE | --all) [--yes]\n", "",
     "Takes a lock away from its holder by deleting its node."},
    {"leader", Command::leader, "zklock leader [--watch] [--json] ELECTION\n", "",
     "Shows the leader and the candidates. Exits with 0, or with 75 if there is no leader."},
    {"ping", Command::ping, "zklock ping [--json]\n", "",
     "Connects, and shows the server, the session timeout and the times of some round trips."},
    {"top", Command::top, "zklock top [--once | --count N] [--interval DURATION] [--json] [PREFIX]\n", "",
     "Shows the locks at and below a path, those with the most waiters first, again and again."},
    {"leases", Command::leases, "zklock leases [--json] LOCK [N]\n", "",
     "Shows how many leases a semaphore has, or changes the number to N."},
    {"config", Command::config, "zklock config [--json]\n", "",
     "Shows the settings of the connection, and from where each of them comes."},
    {"help", Command::help, "zklock help [COMMAND]\n", "", "Shows this help, or the options of a command."},
};

const Word* find_word(const std::string& text) {
    const auto found = std::find_if(kWords.begin(), kWords.end(), [&](const Word& word) { return text == word.text; });
    return found == kWords.end() ? nullptr : &*found;
}

std::string synopsis() {
    std::string text;
    for (const Word& word : kWords) text += word.synopsis;
    return text;
}

std::string general_help() {
    std::string text = "Usage:\n" + synopsis() + "\nCommands (zklock help COMMAND shows the options):\n";
    for (const Word& word : kWords) text += std::string("  ") + word.text + "\t" + word.summary + "\n";
    return text + "\nExit codes, files and examples: man zklock\n";
}

std::string joined(const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
    return text;
}

std::string did_you_mean(const std::string& typed, const std::vector<std::string>& known) {
    // With two errors, a short word could be any other.
    const std::size_t most = std::min<std::size_t>(2, (typed.size() + 1) / 3);
    std::size_t best = most + 1;
    std::string nearest;
    for (const std::string& candidate : known) {
        const bool begun = typed.size() > 2 && candidate.starts_with(typed);
        const std::size_t slips = begun ? 1 : distance(typed, candidate);
        if (slips >= best) continue;
        best = slips;
        nearest = candidate;
    }
    return nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?";
}

std::string like_a_word(const std::string& typed) {
    std::vector<std::string> words;
    for (const Word& word : kWords) words.emplace_back(word.text);
    return did_you_mean(typed, words);
}

void check_lock(const std::string& lock, bool after_command) {
    if (find_word(lock)) usage("put the command first: zklock " + lock + " [OPTIONS] ...");
    if (!lock.starts_with('/') && after_command) {
        usage("\"" + lock + "\" is not an absolute path" + (lock.empty() ? "" : ": write " + tidy("/" + lock)));
    }
    if (!lock.starts_with('/')) {
        usage("\"" + lock + "\" is neither a command of zklock nor an absolute path" + like_a_word(lock));
    }
    if (const std::string better = tidy(lock); better != lock) {
        usage("\"" + lock + "\" has too many slashes: write " + better);
    }
}

}  // namespace zkrecipes::zklock
