#include "zklock/command_line/options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "zklock/command_line/command_line.hpp"
#include "zklock/command_line/command_table.hpp"
#include "zklock/command_line/connection.hpp"
#include "zklock/command_line/duration.hpp"
#include "zklock/command_line/settings.hpp"
#include "zklock/system/result_file.hpp"

namespace zkrecipes::zklock {
namespace {

std::string base_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

/// One run over the command line: CLI11 fills the texts, finish() makes them an Options.
class Parser {
public:
    Parser(const Word& word, Options& options)
        : word_(word), options_(options), app_(word.summary, std::string("zklock ") + word.text) {
        options_.command = word.command;
        app_.formatter(help_formatter(word));
        app_.add_flag("--version", version_, "Shows the version, with --json also the client's");
        app_.add_flag("-v,--verbose", options_.verbose, "Says more; twice: each step");
        app_.add_flag("-q,--quiet", options_.quiet, "Says nothing but errors in the command line");
        app_.add_flag("--json", options_.json, "Speaks JSON");
        app_.add_flag("--no-color", no_color_, "Shows no colours on a terminal");
        for (const Setting& setting : kSettings) add_setting(setting.key);
        add_options_of_command();
    }

    const CLI::Option* find(const std::string& name) const { return app_.get_option_no_throw(name); }

    std::vector<std::string> long_options() const {
        std::vector<std::string> names;
        for (const CLI::Option* option :
             app_.get_options([](const CLI::Option* o) { return !o->get_group().empty(); })) {
            for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
        }
        return names;
    }

    void parse(std::vector<std::string> arguments) {
        const CommandLine line = read_words(arguments, finder(), runs());
        if (!line.lone_equals.empty()) {
            const std::string name = line.lone_equals.substr(0, line.lone_equals.size() - 1);
            // CLI11 takes the next word, perhaps the lock, for the value of "--option=".
            usage(line.lone_equals + " has no value; if the empty one is meant: " + name + " ''");
        }
        std::vector<std::string> backwards(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
        try {
            app_.parse(backwards);
        } catch (const CLI::CallForHelp&) {
            options_.command = Command::help;
            options_.help_text = app_.help();
            return;
        } catch (const CLI::ParseError& error) {
            forget_result(options_.result);
            refuse(line, arguments, error.what());
        }
        if (version_) {
            options_.command = Command::version;
            return;
        }
        // Credentials may come from a pipe, and a signal before them.
        forget_result(options_.result);
        if (runs()) take_command(app_.remaining(), line);
        finish();
    }

private:
    bool runs() const { return word_.command == Command::run || word_.command == Command::elect; }
    FindOption finder() const {
        return [this](const std::string& name) { return find(name); };
    }
    /// The last line tells what to write.
    [[noreturn]] void refuse_and_show(const std::string& problem) const {
        std::string text = word_.synopsis;
        text.erase(text.find('\n'));
        usage(problem + "; write: " + text);
    }

    /// What CLI11 does not take, in our own words.
    [[noreturn]] void refuse(const CommandLine& line, const std::vector<std::string>& words, const std::string& other) {
        if (!line.unknown.empty()) refuse_unknown(line.unknown);
        if (!line.without_value.empty()) {
            usage(line.without_value + " needs a value: " + line.without_value + " " +
                  find(line.without_value)->get_type_name());
        }
        const std::size_t most = word_.command == Command::ping ? 0 : 1;
        if (!runs() && line.operands.size() > most) {
            refuse_and_show("\"" + words[line.operands[most]] + "\" is one argument too many for zklock " + word_.text);
        }
        for (const CLI::Option* option : app_.get_options()) {
            if (option->count() > 1) usage(option->get_name() + " was given twice");
        }
        usage(other);
    }

    [[noreturn]] void refuse_unknown(const std::string& name) const;

    void add_options_of_command() {
        const Command command = options_.command;
        if (command == Command::run || command == Command::hold) add_lock_options();
        if (runs() || command == Command::hold) add_waiting_options();
        if (runs()) add_run_options();
        if (command == Command::elect) add_election_options();
        if (command == Command::leader) app_.add_flag("--watch", options_.watch, "Goes on, and shows each change");
        if (command == Command::wait) {
            app_.add_option("-w,--timeout,--wait", wait_, "Gives up after DURATION")->type_name("DURATION");
        }
        if (command == Command::break_lock) add_break_options();
        if (command == Command::ls) app_.add_flag("--complete", options_.names_only)->group("");
        if (runs()) {
            app_.prefix_command();
        } else if (command != Command::ping) {
            app_.add_option("LOCK", options_.lock, command == Command::ls ? "Where to look" : "Path of the lock");
        }
    }

    void take_result(const std::string& file) {
        if (!options_.result.empty()) {
            for (const std::string& former : {options_.result, file}) forget_result(former);
            usage("--result was given twice");
        }
        if (file.empty()) usage("--result needs a file: it was given an empty name");
        options_.result = file;
    }

    void add_setting(const std::string& key) {
        static const std::map<std::string, std::pair<const char*, const char*>> kTexts = {
            {"connect", {"HOSTS", "Servers: host:port,host:port[/path]"}},
            {"prefix", {"PATH", "Put before every path"}},
            {"session-timeout", {"DURATION", "After this time without contact the lock is free (15s)"}},
            {"connect-timeout", {"DURATION", "How long the first connect may take (10s); 0: for ever"}},
            {"auth-file", {"FILE", "Credentials, one scheme:credential per line; or fd:N"}},
            {"acl", {"ACL", "Who may do what with our nodes: open, creator, SCHEME:ID:rwcda[,...]"}},
            {"config", {"FILE", "Configuration file"}},
        };
        CLI::Option* option = app_.add_option("--" + key, settings_[key]);
        const auto text = kTexts.find(key);
        if (text == kTexts.end()) {
            option->group("");  // --tls-…: known, so that the answer is a reason and not "unknown option"
        } else {
            option->type_name(text->second.first)->description(text->second.second)->group("Connection");
        }
    }

    void add_lock_options() {
        app_.add_flag("-x,-e,--exclusive", exclusive_, "Holds the lock alone (the default)");
        app_.add_flag("-s,--shared", shared_, "Holds the lock beside others that share it");
        app_.add_flag("--rw", read_write_, "Alone, as the writer of a read-write lock: for Curator's on the same path");
        app_.add_option("-j,--count", count_, "Takes one of N leases: at most N hold the lock at a time")
            ->type_name("N");
        app_.add_option("-L,--lock", set_, "Instead of LOCK, repeated: takes all of these or none")
            ->type_name("LOCK[:shared|:rw]")
            ->allow_extra_args(false);
        app_.add_option("--dialect", dialect_, "Whose node names: curator (the default), kazoo")->type_name("WHOSE");
        app_.add_option("--name", options_.name, "What status shows (the command's name)")->type_name("TEXT");
        app_.add_option("--meta", meta_, "Shown by status; may be repeated")
            ->type_name("KEY=VALUE")
            ->allow_extra_args(false);
    }

    void add_election_options() {
        app_.add_option("--id", options_.id, "Who we are, as others see it (host:pid)")->type_name("TEXT");
        app_.add_option("--layout", layout_, "Whose node names: latch (the default), selector, kazoo")
            ->type_name("WHOSE");
    }

    void add_waiting_options() {
        app_.add_flag("-n,--nonblock,--nb,--nonblocking", options_.nonblock, "Fails at once if the lock is held");
        app_.add_option("-w,--timeout,--wait", wait_, "Gives up waiting after DURATION; 0 is -n")
            ->type_name("DURATION");
        app_.add_option("-E,--conflict-exit-code", conflict_, "Exit code when not acquired (75)")->type_name("N");
        app_.add_option("--lost-exit-code", lost_, "Exit code when the lock was lost (79)")->type_name("N");
        app_.add_flag("--no-create", no_create_, "Does not create the lock's directory");
        app_.add_option("--progress", progress_, "The waiting line: auto, never, always")->type_name("WHEN");
        app_.add_option("--events", options_.events, "Writes JSON Lines to a descriptor or file")->type_name("FD|FILE");
        // At once, not when all is read: the result tells also of a command line that is refused behind it.
        app_.add_option_function<std::string>(
                "--result", [this](const std::string& file) { take_result(file); }, "Writes one JSON object at the end")
            ->type_name("FILE")
            ->trigger_on_parse();
    }

    void add_run_options() {
        app_.add_option("-c,--command", shell_, "Runs STRING in ${SHELL:-/bin/sh}")->type_name("STRING");
        app_.add_option("--signal", signal_, "What stops the command (TERM)")->type_name("SIGNAL");
        app_.add_option("-k,--kill-after", kill_after_, "From that to KILL (a sixth of the session timeout)")
            ->type_name("DURATION");
        app_.add_option("--on-suspend", on_suspend_, "When the connection breaks: ride, stop, pause (ride)")
            ->type_name("POLICY");
        app_.add_option("--min-hold", min_hold_, "Keeps the lock at least this long")->type_name("DURATION");
        app_.add_option("--max-run", max_run_, "Stops the command after DURATION, exit code 124")
            ->type_name("DURATION");
    }

    void add_break_options() {
        app_.add_flag("--holder", options_.break_holder, "Removes the holder");
        app_.add_flag("--all", options_.break_all, "Removes the holder and all who wait");
        app_.add_option("--node", options_.break_node, "Removes exactly this node")->type_name("NODE");
        app_.add_flag("--yes", options_.yes, "Does not ask");
    }

    /// What is left when the options are read: LOCK [--] COMMAND, or LOCK -c STRING as flock has it.
    void take_command(std::vector<std::string> rest, const CommandLine& line) {
        const bool dashes = !rest.empty() && rest.front() == "--";
        if (dashes) {
            rest.erase(rest.begin());
        } else if (!rest.empty() && rest.front().starts_with('-')) {
            refuse_unknown(line.unknown.empty() ? rest.front() : line.unknown);
        }
        if (given("--lock")) return take_words(std::move(rest), dashes);
        if (rest.empty()) refuse_and_show("the lock is missing");
        options_.lock = rest.front();
        check_lock(options_.lock);
        rest.erase(rest.begin());
        const bool shell_after = !rest.empty() && (rest.front() == "-c" || rest.front() == "--command");
        if (shell_after) {
            if (rest.size() != 2) usage("-c takes exactly one string, and nothing may follow it");
            if (given("--command")) usage("-c was given twice");
            shell_ = rest[1];
            return take_shell();
        }
        if (!rest.empty() && rest.front() == "--") {
            rest.erase(rest.begin());
        } else if (!rest.empty() && rest.front().starts_with('-')) {
            refuse_option_after_lock(rest.front());
        }
        take_words(std::move(rest), true);
    }

    /// No command begins with a dash, or it is written after --.
    [[noreturn]] void refuse_option_after_lock(const std::string& option) const {
        const std::string command =
            word_.command == Command::run ? "zklock " : std::string("zklock ") + word_.text + " ";
        usage("options go before the lock: write " + command + option + " ... " + options_.lock +
              " COMMAND. If the command itself is called " + option + ", write " + command + options_.lock + " -- " +
              option);
    }

    /// What follows the locks.
    void take_words(std::vector<std::string> rest, bool apart) {
        if (given("--command")) {
            if (!rest.empty()) usage("-c and a command exclude each other: leave one of them out");
            return take_shell();
        }
        if (rest.empty()) refuse_and_show("the command is missing");
        // Or a lock for which the -L was forgotten would be run as the command.
        if (!apart) usage("with -L write -- before the command, and another -L before each further lock");
        options_.argv = std::move(rest);
        if (options_.argv.front().empty()) usage("the command is empty");
    }

    void take_shell() {
        const char* shell = std::getenv("SHELL");
        options_.argv = {shell && *shell ? shell : "/bin/sh", "-c", shell_};
    }

    bool given(const char* name) const {
        const CLI::Option* option = app_.get_option_no_throw(name);
        return option && option->count() > 0;
    }

    void finish() {
        const Command command = options_.command;
        options_.color = !no_color_ && !std::getenv("NO_COLOR");
        if (command == Command::ls && options_.lock.empty()) options_.lock = "/";
        if (command == Command::run || command == Command::hold) take_locks();
        if (command == Command::elect) take_election();
        if (command != Command::ping && !options_.together) {
            if (options_.lock.empty()) refuse_and_show("the lock is missing");
            check_lock(options_.lock);
        }
        if (command == Command::break_lock &&
            int{options_.break_holder} + int{options_.break_all} + int{!options_.break_node.empty()} != 1) {
            refuse_and_show("break needs exactly one of --holder, --node and --all");
        }
        if (given("--conflict-exit-code")) options_.conflict_exit_code = parse_exit_code("-E", conflict_);
        if (given("--lost-exit-code")) options_.lost_exit_code = parse_exit_code("--lost-exit-code", lost_);
        if (given("--timeout")) options_.wait_limit = duration_of("--timeout", wait_);
        if (options_.wait_limit == Nanoseconds(0) && command != Command::wait) options_.nonblock = true;
        if (options_.nonblock && options_.wait_limit > Nanoseconds(0))
            usage("-n and -w exclude each other: leave one of them out");
        options_.create_parents = !no_create_;
        take_meta();
        take_progress();
        if (command == Command::run || command == Command::elect) take_supervision();
        take_connection();
    }

    void take_locks() {
        if (shared_ && (exclusive_ || read_write_)) usage("-s excludes -x and --rw: leave it or these out");
        if (given("--dialect") && dialect_ != "curator" && dialect_ != "kazoo") {
            usage("--dialect: curator or kazoo, not " + dialect_);
        }
        if (dialect_ == "kazoo") options_.dialect = Dialect::kazoo;
        if (given("--lock")) return take_set();
        Mode mode = shared_ ? Mode::shared : read_write_ ? Mode::writer : Mode::exclusive;
        if (given("--count")) {
            if (shared_ || exclusive_ || read_write_) {
                usage("-j excludes -x, -s and --rw: a lease is held beside up to N - 1 others; leave them out");
            }
            if (options_.dialect == Dialect::kazoo) {
                usage("-j excludes --dialect kazoo, whose semaphore has other nodes: leave one of them out");
            }
            options_.leases = parse_lease_count(count_);
            mode = Mode::semaphore;
        }
        options_.locks = {{options_.lock, mode}};
    }

    void take_election() {
        options_.locks = {{options_.lock, Mode::leader}};
        if (layout_ == "selector") {
            options_.layout = ElectionLayout::selector;
        } else if (layout_ == "kazoo") {
            options_.layout = ElectionLayout::kazoo;
        } else if (given("--layout") && layout_ != "latch") {
            usage("--layout: latch, selector or kazoo, not " + layout_);
        }
    }

    void take_set() {
        if (!options_.lock.empty())
            usage("LOCK and -L exclude each other: give all locks by -L, \"-L " + options_.lock + "\" too");
        if (shared_ || exclusive_ || read_write_) {
            usage("-L excludes -x, -s and --rw: say it of each lock, -L PATH, -L PATH:shared or -L PATH:rw");
        }
        if (given("--count")) {
            usage("-L excludes -j: take the lease by another zklock around this one, in this order everywhere");
        }
        if (options_.dialect == Dialect::kazoo) {
            usage("-L excludes --dialect kazoo: kazoo has no sets of locks; leave --dialect out, or take one lock");
        }
        options_.together = true;
        for (const std::string& text : set_) {
            LockSpec lock = parse_lock_spec(text);
            for (const LockSpec& other : options_.locks) {
                if (other.path == lock.path) usage("-L names " + lock.path + " twice");
            }
            options_.lock += (options_.lock.empty() ? "" : ", ") + text;
            options_.locks.push_back(std::move(lock));
        }
    }

    void take_meta() {
        for (const std::string& pair : meta_) {
            const std::size_t equals = pair.find('=');
            if (equals == 0 || equals == std::string::npos) usage("--meta: \"" + pair + "\" is not KEY=VALUE");
            options_.meta[pair.substr(0, equals)] = pair.substr(equals + 1);
        }
        if (options_.name.empty() && !options_.argv.empty()) {
            // Never more of the command line than this: arguments may be secrets, and status shows it to everybody.
            options_.name = base_name(options_.argv.front());
        }
    }

    void take_progress() {
        if (progress_.empty() || progress_ == "auto") return;
        if (progress_ != "never" && progress_ != "always") usage("--progress: auto, never or always, not " + progress_);
        options_.progress = progress_ == "never" ? Progress::never : Progress::always;
    }

    void take_supervision() {
        if (given("--signal")) options_.stop_signal = parse_signal(signal_);
        if (given("--kill-after")) options_.kill_after = duration_of("--kill-after", kill_after_);
        if (given("--max-run")) options_.max_run = duration_of("--max-run", max_run_);
        if (options_.max_run == Nanoseconds(0)) options_.max_run.reset();  // as timeout(1)
        if (given("--min-hold")) options_.min_hold = duration_of("--min-hold", min_hold_);
        if (on_suspend_ == "stop") {
            options_.on_suspend = OnSuspend::stop;
        } else if (on_suspend_ == "pause") {
            options_.on_suspend = OnSuspend::pause;
        } else if (given("--on-suspend") && on_suspend_ != "ride") {
            usage("--on-suspend: ride, stop or pause, not " + on_suspend_);
        }
    }

    void take_connection() {
        std::map<std::string, std::string> given;
        for (const auto& [key, value] : settings_) {
            if (app_.get_option("--" + key)->count() > 0) given[key] = value;
        }
        read_connection(Settings(std::move(given)), options_);
        if (options_.kill_after && *options_.kill_after >= options_.session_timeout / 2) {
            usage("--kill-after must be less than half the session timeout (" +
                  format_duration(options_.session_timeout) + "): the command has to be dead before the lock is free");
        }
    }

    const Word& word_;
    Options& options_;
    CLI::App app_;
    std::map<std::string, std::string> settings_;
    std::vector<std::string> meta_, set_;
    std::string count_, dialect_, layout_, wait_, conflict_, lost_, shell_, signal_, kill_after_, on_suspend_,
        min_hold_, max_run_, progress_;
    bool version_ = false, no_color_ = false, exclusive_ = false, shared_ = false, read_write_ = false,
         no_create_ = false;
};

/// One for each command.
std::vector<std::unique_ptr<Parser>> all_parsers(Options& unused) {
    std::vector<std::unique_ptr<Parser>> parsers;
    for (const Word& word : kWords) parsers.push_back(std::make_unique<Parser>(word, unused));
    return parsers;
}

void Parser::refuse_unknown(const std::string& name) const {
    Options unused;
    std::vector<std::string> owners, others;
    for (const auto& parser : all_parsers(unused)) {
        if (parser->find(name)) owners.emplace_back(parser->word_.text);
        for (std::string& option : parser->long_options()) others.push_back(std::move(option));
    }
    const std::string problem = "unknown option " + name;
    if (!owners.empty()) {
        refuse_and_show(problem + " of zklock " + word_.text + " (it is one of zklock " + joined(owners) + ")");
    }
    std::string hint = did_you_mean(name, long_options());
    if (hint.empty()) hint = did_you_mean(name, others);
    usage(problem + (hint.empty() ? std::string("; zklock help ") + word_.text + " shows the options" : hint));
}

/// The word may also follow options, as in "zklock --connect X ls": no lock has such a name.
void put_word_first(std::vector<std::string>& arguments) {
    if (!arguments.front().starts_with('-')) return;
    Options unused;
    const auto parsers = all_parsers(unused);
    const auto any = [&](const std::string& name) -> const CLI::Option* {
        for (const auto& parser : parsers) {
            if (const CLI::Option* option = parser->find(name)) return option;
        }
        return nullptr;
    };
    const CommandLine line = read_words(arguments, any, true);
    if (line.operands.empty() || !find_word(arguments[line.operands.front()])) return;
    const auto word = arguments.begin() + static_cast<std::ptrdiff_t>(line.operands.front());
    std::rotate(arguments.begin(), word, word + 1);
}

}  // namespace

void usage(const std::string& text) { throw Failure(kUsage, text + "\nTry 'zklock --help'."); }

void parse_options(int argc, const char* const* argv, Options& options) {
    std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
    if (arguments.empty()) usage("Usage:\n" + synopsis());
    put_word_first(arguments);
    const Word* word = find_word(arguments.front());
    // A lock is an absolute path, so no lock can be mistaken for one of these.
    if (word) arguments.erase(arguments.begin());
    if (word && word->command == Command::help && !arguments.empty() && !arguments.front().starts_with('-')) {
        word = find_word(arguments.front());
        if (!word) check_lock(arguments.front());
        arguments = {"--help"};
    }
    const bool asked = !word && (arguments.front() == "--help" || arguments.front() == "-h");
    if (asked || (word && word->command == Command::help)) {
        options.command = Command::help;
        options.help_text = general_help();
        return;
    }
    if (!word) word = &kWords.front();
    Parser(*word, options).parse(std::move(arguments));
}

}  // namespace zkrecipes::zklock
