/**
 * The serving policy of environment:default (contract/wire.md, Channels, status and serving
 * policy).
 */
import { POLICY_RELEASES_MAX, WEIGHTS_TOTAL } from '../value/targets.ts'
import { documented, idField, integer, Micros, Revision, U64 } from './fields.ts'
import { OperationField } from './idempotency-records.ts'
import { type Infer, schema } from './schema.ts'
import { DigestField } from './workspace.ts'

const Mode = schema("'atomic' | 'weighted'")

const WeightedReleases = schema([
  {
    releaseId: idField('rel'),
    weight: integer(1, WEIGHTS_TOTAL),
  },
  '[]',
])

/** Checks each field. The rule in product/serving checks constraints across fields. */
export const ServingPolicySet = documented(
  schema({
    /** 0 before the first policy. */
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

export const ServingPolicy = schema({
  version: '1',
  /** Revision 0 without Releases before the first policy. */
  desired: { revision: U64, mode: Mode, releases: WeightedReleases },
  /** Revision 0 while environment:default serves nothing. */
  observed: { revision: U64, convergedAtMicros: [Micros, '|', 'null'] },
})
export type ServingPolicy = Infer<typeof ServingPolicy>

export const ServingPolicyChanged = schema({ '...': ServingPolicy, operation: OperationField })
export type ServingPolicyChanged = Infer<typeof ServingPolicyChanged>

export const SchemaCompatibility = schema({
  version: '1',
  /** True if each Release of the desired policy accepts the documents of every other. */
  compatible: 'boolean',
  releases: [
    {
      releaseId: idField('rel'),
      schemaHash: DigestField,
      indexHash: DigestField,
      cronHash: DigestField,
    },
    '[]',
  ],
})
export type SchemaCompatibility = Infer<typeof SchemaCompatibility>
