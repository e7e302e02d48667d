#include "cli/output/access_table.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

v1::UserToken TokenOf(const std::string& name, const std::string& role) {
  v1::UserToken token;
  token.set_id("5f0c6d1e9b2a7f34");
  token.set_name(name);
  token.set_role(role);
  token.set_created(1795703142);
  token.set_expires(1798295142);
  return token;
}

v1::Revocation RevocationBy(const std::string& name) {
  v1::Revocation revocation;
  revocation.set_revoked(1795766400);
  revocation.set_revoked_by("spiffe://lab/operator/" + name);
  return revocation;
}

TEST(AccessTableTest, NoLongNameMovesTheColumnsOfTokens) {
  const std::string name(30, 'n');
  EXPECT_EQ(TokenTableText({TokenOf("ann", "submitter"), TokenOf(name, "viewer")}, {}),
            "ID     NAME                            ROLE       CREATED               EXPIRES\n"
            "…7f34  ann                             submitter  2026-11-26T14:25:42Z  "
            "2026-12-26T14:25:42Z\n"
            "…7f34  nnnnnnnnnnnnnnnnnnnnnnnnnnnnnn  viewer     2026-11-26T14:25:42Z  "
            "2026-12-26T14:25:42Z\n");
}

TEST(AccessTableTest, ATerminalShowsBelowATokenWhenItWasRevoked) {
  v1::UserToken token = TokenOf("ann", "submitter");
  token.set_revoked(1795766400);
  EXPECT_EQ(TokenTableText({token}, {.columns = 80}),
            "ID     NAME  ROLE       CREATED               EXPIRES\n"
            "…7f34  ann   submitter  2026-11-26T14:25:42Z  2026-12-26T14:25:42Z\n"
            "  revoked: 2026-11-27T08:00:00Z\n");
}

TEST(AccessTableTest, ASerialNumberIsWholeOnATerminal) {
  v1::Revocation revocation = RevocationBy("olga");
  const std::string serial(40, 'a');
  revocation.set_serial(serial);
  EXPECT_EQ(RevocationTableText({revocation}, {.columns = 80}),
            "CERTIFICATE                                      REVOKED\n"
            "serial " +
                serial +
                "  2026-11-27T08:00:00Z\n"
                "  revoked by: spiffe://lab/operator/olga\n");
  revocation.set_identity("spiffe://lab/worker/w");
  EXPECT_EQ(RevocationTableText({revocation}, {.columns = 80}),
            "CERTIFICATE            REVOKED               REVOKED BY\n"
            "spiffe://lab/worker/w  2026-11-27T08:00:00Z  spiffe://lab/operator/olga\n");
}

}  // namespace
}  // namespace troupe
