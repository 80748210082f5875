#include "zklock/command_line/options.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <memory>

#include "zklock/command_line/command_line.hpp"
#include "zklock/command_line/command_table.hpp"
#include "zklock/command_line/connection.hpp"
#include "zklock/command_line/duration.hpp"
#include "zklock/command_line/look_options.hpp"
#include "zklock/command_line/option_table.hpp"
#include "zklock/command_line/run_options.hpp"
#include "zklock/command_line/settings.hpp"
#include "zklock/system/result_file.hpp"

namespace zkrecipes::zklock {
namespace {

std::string base_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

/// Parses the command line once: CLI11 fills in the texts, and finish() converts them to Options.
class Parser {
public:
    /// `words`: what parse() will be given; null: nothing, but find() and long_options() are to know all options.
    /// `named`: the command line begins with the word, which may be left out for the first of kWords.
    Parser(const Word& word, Options& options, const std::vector<std::string>* words, bool named = true)
        : word_(word), named_(named), options_(options), app_(word.summary, std::string("zklock ") + word.text, words) {
        options_.command = word.command;
        app_.formatter(help_formatter(word));
        app_.set_help_flag("-h,--help", "Prints this help");
        app_.add_flag("-V,--version", version_, "Prints the version; with --json also the client's");
        app_.add_flag("-v,--verbose", options_.verbose, "Prints more; twice: every step");
        app_.add_flag("-q,--quiet", options_.quiet, "Prints only errors in the command line");
        app_.add_flag("--json", options_.json, "Prints JSON");
        app_.add_flag("--no-color", no_color_, "Prints no colours");
        for (std::size_t i = 0; i < settings_.size(); ++i) {
            const Setting& setting = kSettings[i];
            app_.add_option(std::string("--") + setting.key, settings_[i], setting.text)
                ->type_name(setting.type)
                ->group("Connection");
        }
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

    void parse(const std::vector<std::string>& arguments) {
        const CommandLine line = read_words(arguments, finder(), runs());
        if (!line.lone_equals.empty()) {
            const std::string name = line.lone_equals.substr(0, line.lone_equals.size() - 1);
            // CLI11 would use the next word, perhaps the lock, as the value of "--option=".
            usage(line.lone_equals + " has no value; for an empty value write " + name + " ''");
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
        // Before credentials are read, possibly from a pipe: a signal may end zklock during that.
        forget_result(options_.result);
        if (runs()) take_command(app_.remaining(), line);
        finish();
    }

private:
    bool runs() const { return word_.command == Command::run || word_.command == Command::elect; }
    FindOption finder() const {
        return [this](const std::string& name) { return find(name); };
    }
    /// Appends the synopsis.
    [[noreturn]] void refuse_and_show(const std::string& problem) const {
        std::string text = word_.synopsis;
        text.erase(text.find('\n'));
        usage(problem + "; write: " + text);
    }

    /// Explains why CLI11 refused the command line.
    [[noreturn]] void refuse(const CommandLine& line, const std::vector<std::string>& words, const std::string& other) {
        if (!line.unknown.empty()) refuse_unknown(line.unknown);
        if (!line.without_value.empty()) {
            usage(line.without_value + " needs a value: " + line.without_value + " " +
                  find(line.without_value)->get_type_name());
        }
        const std::size_t most = most_operands(word_.command);
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
        run_options_.add_to(app_, command);
        if (command == Command::elect) add_election_options();
        if (command == Command::wait) {
            app_.add_option("-w,--timeout,--wait", wait_, "Gives up after DURATION")->type_name("DURATION");
        }
        look_.add(app_, options_);
        if (runs()) {
            app_.prefix_command();
        } else if (most_operands(command) > 0) {
            const bool searches = command == Command::ls || command == Command::top;
            using Operand = std::pair<const char*, const char*>;
            const auto [name, text] = searches                     ? Operand("PREFIX", "Path to search")
                                      : command == Command::leader ? Operand("ELECTION", "Path of the election")
                                                                   : Operand("LOCK", "Path of the lock");
            app_.add_option(name, options_.lock, text);
            look_.add_operands(app_, options_);
        }
    }

    void take_result(const std::string& file) {
        if (!options_.result.empty()) {
            for (const std::string& former : {options_.result, file}) forget_result(former);
            usage("--result was given twice");
        }
        if (file.empty()) usage("--result needs the name of a file");
        options_.result = file;
    }

    void add_lock_options() {
        app_.add_flag("-x,-e,--exclusive", exclusive_, "Takes the lock exclusively (the default)");
        app_.add_flag("-s,--shared", shared_, "Shares the lock with other -s holders");
        app_.add_flag("--rw", read_write_, "Takes the lock exclusively, as the writer of Curator's read-write lock");
        app_.add_option("-j,--count", count_, "Takes one of N leases: limits the number of concurrent holders to N")
            ->type_name("N");
        app_.add_option("-L,--lock", set_, "Instead of LOCK; repeatable: takes all of these locks or none")
            ->type_name("LOCK[:shared|:rw]")
            ->allow_extra_args(false);
        app_.add_option("--dialect", dialect_, "Names of nodes: curator (the default), kazoo")->type_name("NAMES");
        app_.add_option("--name", options_.name, "Name that status shows (the command's)")->type_name("TEXT");
        app_.add_option("--meta", meta_, "Label that status shows; repeatable")
            ->type_name("KEY=VALUE")
            ->allow_extra_args(false);
    }

    void add_election_options() {
        app_.add_option("--id", options_.id, "Identity of this candidate (host:pid)")->type_name("TEXT");
        app_.add_option("--layout", layout_, "Names of nodes: latch (the default), selector, kazoo")
            ->type_name("NAMES");
    }

    void add_waiting_options() {
        app_.add_flag("-n,--nonblock,--nb,--nonblocking", options_.nonblock, "Fails immediately if the lock is held");
        app_.add_option("-w,--timeout,--wait", wait_, "Gives up waiting after DURATION; 0 is -n")
            ->type_name("DURATION");
        app_.add_option("-E,--conflict-exit-code", conflict_, "Exit code if the lock was not acquired (75)")
            ->type_name("N");
        app_.add_option("--lost-exit-code", lost_, "Exit code if the lock was lost (79)")->type_name("N");
        app_.add_flag("--no-create", no_create_, "Does not create the path of the lock");
        app_.add_option("--progress", progress_, "Progress line while waiting: auto, never, always")->type_name("WHEN");
        app_.add_option("--events", options_.events, "Writes events as JSON Lines")->type_name("FD|FILE");
        // Immediately, not after all options: the result also describes an error later in the command line.
        app_.add_option_function(
                "--result", [this](const std::string& file) { take_result(file); }, "Writes one JSON object at the end")
            ->type_name("FILE")
            ->trigger_on_parse();
    }

    void add_run_options() {
        app_.add_option("-c,--command", shell_, "Runs STRING in ${SHELL:-/bin/sh}")->type_name("STRING");
        app_.add_option("--signal", signal_, "Signal that stops the command (TERM)")->type_name("SIGNAL");
        app_.add_option("-k,--kill-after", kill_after_,
                        "Time from that signal to KILL (a sixth of the session timeout)")
            ->type_name("DURATION");
        app_.add_option("--on-suspend", on_suspend_, "If the connection breaks: ride, stop, pause (ride)")
            ->type_name("POLICY");
        app_.add_option("--min-hold", min_hold_, "Keeps the lock at least this long")->type_name("DURATION");
        app_.add_option("--max-run", max_run_, "Stops the command after DURATION; exit code 124")
            ->type_name("DURATION");
    }

    /// Takes the words after the options: LOCK [--] COMMAND, or LOCK -c STRING as in flock.
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
        check_lock(options_.lock, named_);
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

    /// A word with a dash is an option in the wrong place; a command of such a name is written after --.
    [[noreturn]] void refuse_option_after_lock(const std::string& option) const {
        const std::string command =
            word_.command == Command::run ? "zklock " : std::string("zklock ") + word_.text + " ";
        usage("options go before the lock: write " + command + option + " ... " + options_.lock +
              " COMMAND. If the command itself is called " + option + ", write " + command + options_.lock + " -- " +
              option);
    }

    /// Takes the words after the locks.
    void take_words(std::vector<std::string> rest, bool apart) {
        if (given("--command")) {
            if (!rest.empty()) usage("-c cannot be combined with a command");
            return take_shell();
        }
        if (rest.empty()) refuse_and_show("the command is missing");
        // Otherwise a lock without -L would run as the command.
        if (!apart) usage("with -L, write -- before the command and -L before every lock");
        options_.argv = std::move(rest);
        if (options_.argv.front().empty()) usage("the command is empty");
    }

    void take_shell() {
        const char* shell = std::getenv("SHELL");
        options_.argv = {shell && *shell ? shell : "/bin/sh", "-c", shell_};
    }

    bool given(const char* name) const { return app_.given(name); }

    void finish() {
        const Command command = options_.command;
        options_.color = !no_color_ && !std::getenv("NO_COLOR");
        const bool searches = command == Command::ls || command == Command::top;
        if (searches && options_.lock.empty()) options_.lock = "/";
        if (command == Command::run || command == Command::hold) take_locks();
        if (command == Command::elect) take_election();
        if (command == Command::wait) options_.locks = {{options_.lock, Mode::exclusive}};
        if (most_operands(command) > 0 && !options_.together) {
            if (options_.lock.empty()) refuse_and_show("the lock is missing");
            check_lock(options_.lock, named_);
        }
        if (const std::string problem = look_.take(options_); !problem.empty()) refuse_and_show(problem);
        if (given("--conflict-exit-code")) options_.conflict_exit_code = parse_exit_code("-E", conflict_);
        if (given("--lost-exit-code")) options_.lost_exit_code = parse_exit_code("--lost-exit-code", lost_);
        if (given("--timeout")) options_.wait_limit = duration_of("-w", wait_);
        if (options_.wait_limit == Nanoseconds(0) && command != Command::wait) options_.nonblock = true;
        if (options_.nonblock && options_.wait_limit > Nanoseconds(0)) usage("-n cannot be combined with -w");
        options_.create_parents = !no_create_;
        take_meta();
        take_progress();
        if (command == Command::run || command == Command::elect) take_supervision();
        run_options_.take(app_, options_);
        take_connection();
    }

    void take_locks() {
        if (shared_ && (exclusive_ || read_write_)) usage("-s cannot be combined with -x or --rw");
        if (given("--dialect") && dialect_ != "curator" && dialect_ != "kazoo") {
            usage("--dialect must be curator or kazoo, not " + dialect_);
        }
        if (dialect_ == "kazoo") options_.dialect = Dialect::kazoo;
        if (given("--lock")) return take_set();
        Mode mode = shared_ ? Mode::shared : read_write_ ? Mode::writer : Mode::exclusive;
        if (given("--count")) {
            if (shared_ || exclusive_ || read_write_) {
                usage("-j cannot be combined with -x, -s or --rw: up to N holders share a semaphore");
            }
            if (options_.dialect == Dialect::kazoo) {
                usage("-j cannot be combined with --dialect kazoo: kazoo's semaphore uses other nodes");
            }
            options_.leases = parse_lease_count("-j", count_);
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
            usage("--layout must be latch, selector or kazoo, not " + layout_);
        }
    }

    void take_set() {
        if (!options_.lock.empty())
            usage("LOCK and -L cannot be combined: write -L before every lock, also \"-L " + options_.lock + "\"");
        if (shared_ || exclusive_ || read_write_) {
            usage(
                "-L cannot be combined with -x, -s or --rw: write the mode of each lock behind its path, -L PATH, "
                "-L PATH:shared or -L PATH:rw");
        }
        if (given("--count")) {
            usage(
                "-L cannot be combined with -j: run this zklock as the command of a zklock -j, in this order "
                "everywhere");
        }
        if (options_.dialect == Dialect::kazoo) {
            usage("-L cannot be combined with --dialect kazoo: kazoo has no sets of locks");
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
            // Only the name of the command: its arguments may be secrets, and everybody can see the status.
            options_.name = base_name(options_.argv.front());
        }
    }

    void take_progress() {
        if (progress_.empty() || progress_ == "auto") return;
        if (progress_ != "never" && progress_ != "always")
            usage("--progress must be auto, never or always, not " + progress_);
        options_.progress = progress_ == "never" ? Progress::never : Progress::always;
    }

    void take_supervision() {
        if (given("--signal")) options_.stop_signal = parse_signal(signal_);
        if (given("--kill-after")) options_.kill_after = duration_of("-k", kill_after_);
        if (given("--max-run")) options_.max_run = duration_of("--max-run", max_run_);
        if (options_.max_run == Nanoseconds(0)) options_.max_run.reset();  // as timeout(1)
        if (given("--min-hold")) options_.min_hold = duration_of("--min-hold", min_hold_);
        if (on_suspend_ == "stop") {
            options_.on_suspend = OnSuspend::stop;
        } else if (on_suspend_ == "pause") {
            options_.on_suspend = OnSuspend::pause;
        } else if (given("--on-suspend") && on_suspend_ != "ride") {
            usage("--on-suspend must be ride, stop or pause, not " + on_suspend_);
        }
    }

    void take_connection() {
        std::map<std::string, std::string> given;
        for (std::size_t i = 0; i < settings_.size(); ++i) {
            if (app_.given(std::string("--") + kSettings[i].key)) given[kSettings[i].key] = settings_[i];
        }
        if (options_.command == Command::config) {
            options_.given_settings = std::move(given);  // the command shows them even if one of them is wrong
            return;
        }
        read_connection(Settings(std::move(given)), options_);
        if (options_.kill_after && *options_.kill_after >= options_.session_timeout / 2) {
            usage("--kill-after must be less than half the session timeout (" +
                  format_duration(options_.session_timeout) +
                  "): the command must be dead before the servers free the lock");
        }
    }

    const Word& word_;
    const bool named_;
    Options& options_;
    OptionTable app_;
    RunOptions run_options_;
    LookOptions look_;
    std::array<std::string, std::size(kSettings)> settings_;
    std::vector<std::string> meta_, set_;
    std::string count_, dialect_, layout_, wait_, conflict_, lost_, shell_, signal_, kill_after_, on_suspend_,
        min_hold_, max_run_, progress_;
    bool version_ = false, no_color_ = false, exclusive_ = false, shared_ = false, read_write_ = false,
         no_create_ = false;
};

/// One parser for each command.
std::vector<std::unique_ptr<Parser>> all_parsers(Options& unused) {
    std::vector<std::unique_ptr<Parser>> parsers;
    for (const Word& word : kWords) parsers.push_back(std::make_unique<Parser>(word, unused, nullptr));
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
        refuse_and_show(problem + " of zklock " + word_.text + " (it is an option of zklock " + joined(owners) + ")");
    }
    std::string hint = did_you_mean(name, Parser(word_, unused, nullptr).long_options());
    if (hint.empty()) hint = did_you_mean(name, others);
    usage(problem + (hint.empty() ? std::string("; zklock help ") + word_.text + " shows the options" : hint));
}

/// Options may precede the name of the command, as in "zklock --connect X ls": no lock has such a name.
void put_word_first(std::vector<std::string>& arguments) {
    if (!arguments.front().starts_with('-')) return;
    if (std::none_of(arguments.begin(), arguments.end(), find_word)) return;  // the rest takes a millisecond
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
    // A lock is an absolute path, so it cannot be confused with a command.
    if (word) arguments.erase(arguments.begin());
    if (word && word->command == Command::help && !arguments.empty() && !arguments.front().starts_with('-')) {
        word = find_word(arguments.front());
        if (!word) usage("\"" + arguments.front() + "\" is not a command of zklock" + like_a_word(arguments.front()));
        arguments = {"--help"};
    }
    const bool asked = !word && (arguments.front() == "--help" || arguments.front() == "-h");
    if (asked || (word && word->command == Command::help)) {
        options.command = Command::help;
        options.help_text = general_help();
        return;
    }
    const bool named = word != nullptr;
    if (!word) word = &kWords.front();
    Parser(*word, options, &arguments, named).parse(arguments);
}

}  // namespace zkrecipes::zklock
