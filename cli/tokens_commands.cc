// The commands tokens create, tokens list and tokens revoke: what users hold instead of
// certificates.
#include <unistd.h>

#include <utility>

#include "base/clock.h"
#include "base/program/program.h"
#include "base/security/certificate.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/output/access_table.h"
#include "cli/output/text_style.h"
#include "report/text/duration_text.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

constexpr TextFlag kTokenNameFlag{"--name", "NAME", "who holds the token", true};
constexpr TextFlag kTokenRoleFlag{"--role", "ROLE",
                                  "what the holder may do: viewer, submitter or operator", true,
                                  "viewer submitter operator"};
constexpr TextFlag kLifetimeFlag{
    "--for", "TIME", "time until the token expires, such as 30d or 1h30m (d, h, m, s)", true};

Json TokenToJson(const v1::UserToken& token) {
  Json json = {{"id", token.id()},           {"name", token.name()},
               {"role", token.role()},       {"created", token.created()},
               {"expires", token.expires()}, {"created_by", token.created_by()}};
  if (token.revoked() != 0) {
    json["revoked"] = token.revoked();
    json["revoked_by"] = token.revoked_by();
  }
  return json;
}

// The text of the token is all of the output, so that it can go to a file.
StatusOr<ExitCode> CreateToken(const CommandLine& line) {
  v1::CreateUserTokenRequest request;
  request.set_name(*line.Get(kTokenNameFlag));
  request.set_role(*line.Get(kTokenRoleFlag));
  TROUPE_ASSIGN_OR_RETURN(const int64_t lifetime,
                          ParseDuration(kLifetimeFlag.name, *line.Get(kLifetimeFlag)));
  request.set_lifetime_seconds(lifetime);
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  TROUPE_ASSIGN_OR_RETURN(
      const v1::CreateUserTokenResponse created,
      client.Call<v1::CreateUserTokenResponse>(
          Client::Repeat::kNever, Client::kCallLimit, [&](auto* context, auto* response) {
            return client.access().CreateUserToken(context, request, response);
          }));
  if (line.wants_json()) {
    Json json = TokenToJson(created.token());
    json["token"] = created.text();
    PrintOutput("{}\n", Dump(json));
    return ExitCode::kDone;
  }
  PrintOutput("{}\n", created.text());
  PrintMessage(
      "this is the token {} of {}, {} until {}; it is printed this once, and who has it may "
      "use it\n",
      created.token().id(), created.token().name(), created.token().role(),
      UtcText(created.token().expires()));
  return ExitCode::kDone;
}

StatusOr<ExitCode> ListTokens(const CommandLine& line) {
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  TROUPE_ASSIGN_OR_RETURN(
      const v1::ListUserTokensResponse listed,
      client.Call<v1::ListUserTokensResponse>(
          Client::Repeat::kSafe, Client::kCallLimit, [&](auto* context, auto* response) {
            return client.access().ListUserTokens(context, {}, response);
          }));
  if (line.wants_json()) {
    Json tokens = Json::array();
    for (const auto& token : listed.tokens()) tokens.push_back(TokenToJson(token));
    PrintOutput("{}\n", Dump({{"tokens", std::move(tokens)}}));
  } else if (listed.tokens().empty()) {
    PrintMessage("there are no tokens\n");
  } else {
    WriteOutput(TokenTableText({listed.tokens().begin(), listed.tokens().end()},
                               TextStyleOf(STDOUT_FILENO)));
  }
  return ExitCode::kDone;
}

StatusOr<ExitCode> RevokeToken(const CommandLine& line) {
  v1::RevokeUserTokenRequest request;
  request.set_id(line.positional()[0]);
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  TROUPE_ASSIGN_OR_RETURN(
      const v1::RevokeUserTokenResponse revoked,
      client.Call<v1::RevokeUserTokenResponse>(
          Client::Repeat::kSafe, Client::kCallLimit, [&](auto* context, auto* response) {
            return client.access().RevokeUserToken(context, request, response);
          }));
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump(TokenToJson(revoked.token())));
  } else {
    WriteOutput(TokenTableText({revoked.token()}, TextStyleOf(STDOUT_FILENO)));
  }
  return ExitCode::kDone;
}

}  // namespace

std::vector<Command> TokensCommands() {
  return {
      {.name = "tokens create",
       .summary = "Creates a token, with which a user calls the coordinator instead of with a "
                  "certificate. Only operators may.",
       .flags = {&kTokenNameFlag, &kTokenRoleFlag, &kLifetimeFlag},
       .run = CreateToken},
      {.name = "tokens list",
       .summary = "Lists the tokens of users, with the end of each id. Only operators may.",
       .run = ListTokens},
      {.name = "tokens revoke",
       .positionals = "ID",
       .least_positionals = 1,
       .most_positionals = 1,
       .summary =
           "Revokes a token by its id or the end of it; its open watches end. Only operators "
           "may.",
       .run = RevokeToken},
  };
}

}  // namespace troupe
