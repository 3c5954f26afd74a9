/** The serving policy of environment:default (wire decisions, section 3). */
import { idField, Micros, Revision, U64 } from './fields.ts'
import { OperationField } from './operations.ts'
import { message } from './schema.ts'
import { DigestField } from './workspace.ts'

const Mode = message("'atomic' | 'weighted'")

/** Sorted by Release; the weights are 10,000 together, which is left to the rule. */
const WeightedReleases = message({
  releaseId: idField('rel'),
  weight: '1 <= number.integer <= 10000',
}).array()

export const ServingPolicySet = message({
  /** 0 where there is no policy. */
  expectedRevision: Revision,
  mode: Mode,
  releases: WeightedReleases,
  changedAtMicros: Micros,
})

export const ServingPolicy = message({
  version: '1',
  /** Revision 0 without Releases where there never was a policy. */
  desired: { revision: U64, mode: Mode, releases: WeightedReleases },
  /** Revision 0 where environment:default serves nothing. */
  observed: { revision: U64, convergedAtMicros: Micros.or('null') },
})
export type ServingPolicy = typeof ServingPolicy.infer

export const ServingPolicyChanged = ServingPolicy.merge({ operation: OperationField })
export type ServingPolicyChanged = typeof ServingPolicyChanged.infer

export const SchemaCompatibility = message({
  version: '1',
  /** Whether each Release of the desired policy takes the documents of every other. */
  compatible: 'boolean',
  releases: message({
    releaseId: idField('rel'),
    schemaHash: DigestField,
    indexHash: DigestField,
    cronHash: DigestField,
  }).array(),
})
export type SchemaCompatibility = typeof SchemaCompatibility.infer
