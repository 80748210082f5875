// The sides of PostgreSQL in scripts/peers: one contender, with a connection of its own.
//     peer_postgres HOST PORT USER advisory|row     the lock: an advisory lock, or a row that a transaction locks
//     peer_postgres HOST PORT USER setup            makes the table; waits until the server is up
#include <libpq-fe.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "bench/peers/contender.hpp"

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& why) {
    std::fprintf(stderr, "peers: PostgreSQL failed: %s\n", why.c_str());
    std::exit(1);
}

class Connection {
public:
    explicit Connection(const std::string& where) {
        const auto give_up = Clock::now() + std::chrono::seconds(30);
        while (true) {
            postgres_.reset(::PQconnectdb(where.c_str()));
            if (::PQstatus(postgres_.get()) == CONNECTION_OK) return;
            if (Clock::now() > give_up) fail(::PQerrorMessage(postgres_.get()));
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    }

    void execute(const char* sql) { check(::PQexec(postgres_.get(), sql)); }
    void prepare(const char* name, const char* sql) { check(::PQprepare(postgres_.get(), name, sql, 0, nullptr)); }
    void run(const char* name) { check(::PQexecPrepared(postgres_.get(), name, 0, nullptr, nullptr, nullptr, 0)); }

private:
    void check(PGresult* answer) {
        const std::unique_ptr<PGresult, decltype(&::PQclear)> result(answer, &::PQclear);
        const ExecStatusType status = ::PQresultStatus(result.get());
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) fail(::PQerrorMessage(postgres_.get()));
    }

    std::unique_ptr<PGconn, decltype(&::PQfinish)> postgres_{nullptr, &::PQfinish};
};

void contend_for_advisory_lock(Connection& database) {
    database.prepare("acquire", "SELECT pg_advisory_lock(18)");
    database.prepare("release", "SELECT pg_advisory_unlock(18)");
    zkrecipes::bench::contend([&] { database.run("acquire"); }, [&] { database.run("release"); });
}

void contend_for_row(Connection& database) {
    database.prepare("lock", "SELECT id FROM locks WHERE id = 18 FOR UPDATE");
    zkrecipes::bench::contend(
        [&] {
            database.execute("BEGIN");
            database.run("lock");
        },
        [&] { database.execute("COMMIT"); });
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    const std::string_view kind = argv[4];
    Connection database(std::string("host=") + argv[1] + " port=" + argv[2] + " user=" + argv[3] +
                        " dbname=postgres connect_timeout=30");
    if (kind == "setup") {
        database.execute("CREATE TABLE locks (id integer PRIMARY KEY)");
        database.execute("INSERT INTO locks VALUES (18)");
    } else if (kind == "advisory") {
        contend_for_advisory_lock(database);
    } else if (kind == "row") {
        contend_for_row(database);
    } else {
        return 2;
    }
    return 0;
}
