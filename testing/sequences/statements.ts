/** The statements of the managed source in a sequence, and the grants that they mean. */
import type { ManagedGrants } from '../../src/identity/managed-grants.ts'
import { capabilitiesOfRole } from '../../src/value/capabilities.ts'
import { ENVIRONMENT_ID, PROJECT_ID } from '../operators.ts'

type Sent = ManagedGrants['grants'][number]

/** Ascending revisions, around every bound at which a number type could lose precision. */
export const REVISIONS: readonly bigint[] = [
  1n,
  2n,
  2n ** 31n,
  2n ** 32n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 53n + 1n,
  2n ** 53n + 2n,
  2n ** 63n - 1n,
  2n ** 63n,
  2n ** 64n - 2n,
  2n ** 64n - 1n,
]

const project = { kind: 'project', projectId: PROJECT_ID, environmentId: null } as const
const environment = { ...project, kind: 'environment', environmentId: ENVIRONMENT_ID } as const
const developer: Sent = { scope: project, role: 'developer' }
const observer: Sent = { scope: environment, role: 'observer' }

/** Ways to send each content. The first names each scope once. */
export const CONTENTS: readonly (readonly (readonly Sent[])[])[] = [
  [
    [developer, observer],
    [observer, developer, observer],
  ],
  [[{ scope: project, role: 'operator' }]],
  [[]],
]

/** A grant from before managed sources existed. */
export const LEGACY = { scope: environment, capabilities: ['logs:read'], source: 'legacy' } as const

/** Returns the grants of an operator as one text. */
export function expectedGrantsText(content: number | null, legacy: boolean): string {
  const sent = content === null ? [] : CONTENTS[content]![0]!
  const managed = sent.map(({ scope, role }) => {
    return { scope, capabilities: capabilitiesOfRole(role), source: 'managed' }
  })
  return grantsText(legacy ? [...managed, LEGACY] : managed)
}

/** Returns grants as one text, independent of their order. */
export function grantsText(
  grants: readonly { scope: object; capabilities: readonly string[]; source: string }[],
): string {
  const texts = grants.map(({ scope, capabilities, source }) => {
    return JSON.stringify([Object.entries(scope).sort(), capabilities, source])
  })
  return texts.sort().join()
}
