/** The serving policy of environment:default (wire decisions, section 3). */
import * as z from 'zod'
import { POLICY_RELEASES_MAX, WEIGHTS_TOTAL } from '../value/targets.ts'
import { idField, Micros, Revision, U64 } from './fields.ts'
import { OperationField } from './operations.ts'
import { documented } from './schema.ts'
import { DigestField } from './workspace.ts'

const Mode = z.enum(['atomic', 'weighted'])

const WeightedReleases = z
  .strictObject({
    releaseId: idField('rel'),
    weight: z.int().min(1).max(WEIGHTS_TOTAL),
  })
  .array()

/** What binds several fields or entries is left to the rule. */
export const ServingPolicySet = documented(
  z.strictObject({
    /** 0 where there is no policy. */
    expectedRevision: Revision,
    mode: Mode,
    releases: documented(WeightedReleases, {
      description: `sorted by releaseId, each once, with weights of ${WEIGHTS_TOTAL} together`,
      minItems: 1,
      maxItems: POLICY_RELEASES_MAX,
      uniqueItems: true,
    }),
    changedAtMicros: Micros,
  }),
  {
    if: { properties: { mode: { const: 'atomic' } }, required: ['mode'] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: {
      properties: {
        releases: { maxItems: 1, items: { properties: { weight: { const: WEIGHTS_TOTAL } } } },
      },
    },
  },
)

export const ServingPolicy = z.strictObject({
  version: z.literal(1),
  /** Revision 0 without Releases where there never was a policy. */
  desired: z.strictObject({ revision: U64, mode: Mode, releases: WeightedReleases }),
  /** Revision 0 where environment:default serves nothing. */
  observed: z.strictObject({ revision: U64, convergedAtMicros: Micros.nullable() }),
})
export type ServingPolicy = z.infer<typeof ServingPolicy>

export const ServingPolicyChanged = ServingPolicy.extend({ operation: OperationField })
export type ServingPolicyChanged = z.infer<typeof ServingPolicyChanged>

export const SchemaCompatibility = z.strictObject({
  version: z.literal(1),
  /** Whether each Release of the desired policy takes the documents of every other. */
  compatible: z.boolean(),
  releases: z
    .strictObject({
      releaseId: idField('rel'),
      schemaHash: DigestField,
      indexHash: DigestField,
      cronHash: DigestField,
    })
    .array(),
})
export type SchemaCompatibility = z.infer<typeof SchemaCompatibility>
