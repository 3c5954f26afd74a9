/** The serving policy of environment:default (wire decisions, section 3). */
import * as z from 'zod'
import { idField, Micros, Revision, U64 } from './fields.ts'
import { OperationField } from './operations.ts'
import { DigestField } from './workspace.ts'

const Mode = z.enum(['atomic', 'weighted'])

/** Sorted by Release; the weights are 10,000 together, which is left to the rule. */
const WeightedReleases = z
  .strictObject({
    releaseId: idField('rel'),
    weight: z.int().min(1).max(10_000),
  })
  .array()

export const ServingPolicySet = z.strictObject({
  /** 0 where there is no policy. */
  expectedRevision: Revision,
  mode: Mode,
  releases: WeightedReleases,
  changedAtMicros: Micros,
})

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
