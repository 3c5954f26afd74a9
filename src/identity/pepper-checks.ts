/**
 * Binds an identity database to its peppers. The first start records a check of each pepper. A
 * later start with another pepper fails, until the recorded pepper is restored or an operator
 * confirms the loss that the change causes.
 */
import { lockBootstrap } from '../database/advisory-locks.ts'
import { markPendingInvitationsRevoked } from '../database/identity/invitations.ts'
import {
  findPepperCheck,
  hasPepperChecks,
  type PepperCheck,
  recordPepperCheck,
  replacePepperCheck,
} from '../database/identity/pepper-checks.ts'
import { markAllSessionsRevoked } from '../database/identity/sessions.ts'
import { corrupt } from '../database/rows.ts'
import { type Tx, transaction } from '../database/transaction.ts'
import { Fault } from '../errors/fault.ts'
import { digestEquals, secretDigest } from '../system/digests.ts'
import { decodeBase64Url } from '../value/base64url.ts'
import type { Secret } from '../value/secret.ts'
import { recordAudit } from './audit.ts'
import type { IdentityCore } from './core.ts'
import type { OidcProvider } from './oidc/provider.ts'

export type PepperKind = 'identity' | 'oidc-subject'

/** The check that a configured pepper produces. */
export interface ConfiguredPepper extends PepperCheck {
  readonly kind: PepperKind
}

const MISMATCH = {
  identity: 'SERVER_IDENTITY_PEPPER_MISMATCH',
  'oidc-subject': 'SERVER_OIDC_PEPPER_MISMATCH',
} as const

/**
 * Lists the configured peppers. Another provider ID is another trust namespace
 * (contract/management.md, External identity links), so the pepper of each provider is checked by
 * itself.
 */
export function configuredPeppers(
  identityPepper: Secret,
  providers: readonly Pick<OidcProvider, 'providerId' | 'subjectPepper'>[],
): readonly ConfiguredPepper[] {
  return [
    configured('identity', 'identity', identityPepper),
    ...providers.map(({ providerId, subjectPepper }) =>
      configured('oidc-subject', `oidc-subject:${providerId}`, subjectPepper),
    ),
  ]
}

function configured(kind: PepperKind, pepper: string, secret: Secret): ConfiguredPepper {
  const digest = secretDigest(decodeBase64Url(secret.reveal()), 'pepper-check', pepper)
  return { kind, pepper, digest }
}

/**
 * Throws SERVER_IDENTITY_PEPPER_MISMATCH or SERVER_OIDC_PEPPER_MISMATCH for a pepper that is not
 * the recorded one, unless its change is confirmed. Changes nothing: it runs before migrations,
 * since the database may be another installation's.
 */
export async function checkPeppers(
  { database }: Pick<IdentityCore, 'database'>,
  peppers: readonly ConfiguredPepper[],
  confirmed: readonly PepperKind[],
): Promise<void> {
  if (!(await hasPepperChecks(database))) return
  for (const { kind, pepper, digest } of peppers) {
    const recorded = await findPepperCheck(database, pepper)
    const fits = recorded === null || digestEquals(recorded, digest)
    if (!fits && !confirmed.includes(kind)) throw new Fault(MISMATCH[kind])
  }
}

/**
 * Records the peppers that the database has no check of, and replaces those whose change is
 * confirmed; of servers that start together with different peppers, one wins. Returns the kinds
 * that were replaced. Throws as `checkPeppers` does, with nothing stored.
 */
export async function recordPeppers(
  core: IdentityCore,
  peppers: readonly ConfiguredPepper[],
  confirmed: readonly PepperKind[],
): Promise<readonly PepperKind[]> {
  return transaction(core.database, async (tx) => {
    const replaced: PepperKind[] = []
    const atMicros = core.system.nowMicros()
    for (const each of peppers) {
      await recordPepperCheck(tx, each, atMicros)
      const recorded = await findPepperCheck(tx, each.pepper)
      if (recorded === null) throw corrupt('pepper check')
      if (digestEquals(recorded, each.digest)) continue
      if (!confirmed.includes(each.kind)) throw new Fault(MISMATCH[each.kind])
      await replacePepper(core, tx, each, atMicros)
      replaced.push(each.kind)
    }
    return replaced
  })
}

/**
 * Replaces the check, and revokes what the old identity pepper protected: otherwise a first-owner
 * code that no file holds would stay pending, and sessions would come back with the old pepper.
 * Identity links stay; without their pepper they belong to no subject.
 */
async function replacePepper(
  { system }: IdentityCore,
  tx: Tx,
  { kind, pepper, digest }: ConfiguredPepper,
  atMicros: bigint,
): Promise<void> {
  await replacePepperCheck(tx, { pepper, digest }, atMicros)
  if (kind === 'identity') {
    await lockBootstrap(tx)
    await markPendingInvitationsRevoked(tx, atMicros)
    await markAllSessionsRevoked(tx, atMicros)
  }
  const facts = { actor: null, subject: pepper, atMicros, requestId: null }
  await recordAudit(tx, system, 'pepper.change', facts)
}
