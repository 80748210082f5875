#include "zklock/look/top_command.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/read_node.hpp>

#include "zklock/command_line/connection.hpp"
#include "zklock/look/live.hpp"
#include "zklock/look/lock_table.hpp"
#include "zklock/look/top_picture.hpp"
#include "zklock/report/explain.hpp"
#include "zklock/report/inbox.hpp"
#include "zklock/report/print.hpp"

namespace zkrecipes::zklock {
namespace {

using std::chrono::milliseconds;

// The rate of requests after the first picture: at most 40 a second.
constexpr milliseconds kTick(100);
constexpr std::size_t kRequestsPerTick = 4;
constexpr std::size_t kHoldersPerTick = 2;
constexpr std::size_t kMostUnderWay = 32;
// Before the first picture.
constexpr std::size_t kScanUnderWay = 256;
constexpr std::size_t kRowsWithoutTerminal = 50;

struct Answer {
    std::string path;
    bool is_list = false;
    LockNames names;
    std::optional<NodeContent> node;
    std::exception_ptr error;
};

class Top {
public:
    Top(const Options& options, Console& console, Live& live)
        : options_(options),
          console_(console),
          live_(live),
          setbacks_(options, console),
          table_(options.lock, server_prefix(options).empty() ? "/zookeeper" : "") {}

    void run() {
        scan();
        for (unsigned shown = 0; !live_.stopped();) {
            const Instant next = BootClock::now() + options_.interval;
            show();
            if (options_.pictures != 0 && ++shown == options_.pictures) return;
            while (!live_.stopped() && BootClock::now() < next) {
                live_.pause(kTick);
                take_answers();
                if (BootClock::now() >= quiet_until_) ask();
            }
        }
    }

    bool complete() const { return table_.unreadable_paths().empty(); }

private:
    /// Lists all directories, and reads the holders that the first picture shows. An error ends zklock, as with ls.
    void scan() {
        scanning_ = true;
        while (!live_.stopped()) {
            std::optional<std::string> path;
            while (under_way_ < kScanUnderWay && (path = table_.next_unlisted())) list(*path);
            if (under_way_ == 0) break;
            await_answers();
        }
        choose_rows();
        while (!live_.stopped() && (ask_for_holders(kScanUnderWay - under_way_), under_way_ > 0)) await_answers();
        scanning_ = false;
    }

    void await_answers() {
        inbox_->wait(live_.stop(), std::chrono::seconds(10));
        take_answers();
    }

    void list(const std::string& path) {
        ++under_way_;
        list_lock_async(live_.session(), path, answer_by(), live_.stop(),
                        [inbox = inbox_, path](Result<LockNames> result) {
                            inbox->post({path, true, std::move(result.value), {}, result.error});
                        });
    }

    void read_holder(const std::string& path) {
        ++under_way_;
        holders_[path] = std::nullopt;
        read_node_async(live_.session(), path, Fresh::no, answer_by(), live_.stop(),
                        [inbox = inbox_, path](Result<std::optional<NodeContent>> result) {
                            inbox->post({path, false, {}, std::move(result.value), result.error});
                        });
    }

    Deadline answer_by() const { return scanning_ ? Deadline(std::chrono::seconds(10)) : Live::answer_by(); }

    /// Sends what may be sent in one tick.
    void ask() {
        if (under_way_ >= kMostUnderWay) return;
        std::size_t left = kRequestsPerTick - ask_for_holders(kHoldersPerTick);
        while (left-- > 0) {
            const auto path = table_.next_due(BootClock::now());
            if (!path) return;
            list(*path);
        }
    }

    /// Reads holders of the rows that are shown and not known yet; returns how many.
    std::size_t ask_for_holders(std::size_t most) {
        std::size_t asked = 0;
        for (const LockRow& row : picture_.rows) {
            if (asked == most) break;
            if (row.holder.empty() || holders_.contains(row.holder)) continue;
            read_holder(row.holder);
            ++asked;
        }
        return asked;
    }

    void take_answers() {
        for (Answer& answer : inbox_->take()) {
            --under_way_;
            if (answer.error) {
                take_error(answer);
                continue;
            }
            if (!scanning_) succeeded();
            if (answer.is_list) {
                if (scanning_ && !answer.names.exists && answer.path == options_.lock) {
                    console_.warning(server_path(options_, options_.lock) + ": no such path");
                }
                table_.listed(answer.names, BootClock::now());
            } else if (answer.node) {
                holders_[answer.path] = owner_of(*answer.node);
            }
        }
    }

    void take_error(const Answer& answer) {
        try {
            std::rethrow_exception(answer.error);
        } catch (const Error& error) {
            if (live_.stopped()) return;
            const bool forbidden = error.errc() == Errc::no_permission;
            if (forbidden && answer.is_list && !(scanning_ && answer.path == options_.lock)) {
                return table_.unreadable(answer.path, BootClock::now());
            }
            if (forbidden && !answer.is_list) {
                holders_[answer.path] = unreadable_owner(answer.path);
                return;
            }
            if (scanning_) throw;
            answer.is_list ? table_.failed(answer.path) : static_cast<void>(holders_.erase(answer.path));
            if (BootClock::now() < quiet_until_) return;  // of the same setback
            quiet_until_ = BootClock::now() + setbacks_.failed(error);
            trouble_ = in_words(error, options_);
        }
    }

    void succeeded() {
        setbacks_.succeeded();
        trouble_.clear();
    }

    static winsize terminal() {
        winsize size{};
        if (!::isatty(STDOUT_FILENO) || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
        return size;
    }

    /// Which rows the next picture shows.
    void choose_rows() {
        const std::size_t lines = terminal().ws_row;
        // One line less than the terminal has: the last line break must not scroll it.
        const std::size_t most = lines == 0 ? kRowsWithoutTerminal : lines > kTopLines + 1 ? lines - kTopLines - 1 : 1;
        picture_ = picture_of_rows(table_.rows(), most);
        table_.show(picture_.rows);
        std::erase_if(holders_, [&](const auto& one) {
            return std::none_of(picture_.rows.begin(), picture_.rows.end(),
                                [&](const LockRow& row) { return row.holder == one.first; });
        });
    }

    void show() {
        choose_rows();
        picture_.prefix = options_.lock;
        picture_.oldest_look = table_.oldest_look(BootClock::now());
        picture_.unreadable = table_.unreadable_paths();
        picture_.incomplete = picture_.unreadable.empty() ? "" : forbids_reading(picture_.unreadable, options_, 1);
        picture_.trouble = trouble_;
        picture_.holders = holders_;
        if (options_.json) return print(in_json(picture_));
        const winsize size = terminal();
        const std::string text = in_words(picture_, size.ws_col);
        if (size.ws_row == 0) return print(text + "\n");
        print("\x1b[H\x1b[J" + text);
    }

    const Options& options_;
    Console& console_;
    Live& live_;
    Setbacks setbacks_;
    LockTable table_;
    const std::shared_ptr<Inbox<Answer>> inbox_ = std::make_shared<Inbox<Answer>>();
    TopPicture picture_;
    std::map<std::string, std::optional<Participant>> holders_;  // empty: being read, or not readable
    std::string trouble_;
    std::size_t under_way_ = 0;
    bool scanning_ = false;
    Instant quiet_until_{};
};

}  // namespace

int top_command(const Options& options, Console& console) {
    bool complete = true;
    run_live(options, console, [&](Live& live) {
        Top top(options, console, live);
        top.run();
        complete = top.complete();
    });
    return complete ? kOk : kNoPermission;
}

}  // namespace zkrecipes::zklock
