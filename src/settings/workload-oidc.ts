/**
 * The file of workload providers: issuers that identify CI jobs and service accounts
 * (contract/wire.md, Workload identity).
 */
import { absolutePath, FILE_RULES } from '../system/files.ts'
import { rule, someEntries } from '../wire/rules.ts'
import { declaredSchema, type Infer, schema } from '../wire/schema.ts'
import { jsonFile } from './json-files.ts'
import { type OidcProvider, ProviderFields, providerFrom } from './oidc.ts'
import { invalid } from './sources.ts'
import type { VariableName } from './variables.ts'

const VARIABLE: VariableName = 'SERVICE_PLATFORM_WORKLOAD_OIDC_CONFIG'
const PROVIDERS_MAX = 8
const REQUIRED_CLAIMS_MAX = 16
const CLAIM_NAME_LENGTH_MAX = 256
const CLAIM_LENGTH_MAX = 1024
const { read, rejected } = jsonFile('SERVER_OIDC_CONFIG_INVALID', VARIABLE)

/** A single rule for the whole object: its names are content of the file, which errors omit. */
const RequiredClaims = declaredSchema<Record<string, string>>([
  { '[string]': 'unknown' },
  ':',
  rule(
    `at most ${REQUIRED_CLAIMS_MAX} claims, each with a name of 1 to ${CLAIM_NAME_LENGTH_MAX} ` +
      `characters and a text of 1 to ${CLAIM_LENGTH_MAX}`,
    areRequiredClaims,
  ),
])

const WorkloadProvider = schema({ '...': ProviderFields, requiredClaims: RequiredClaims })

const WorkloadFile = schema({
  version: '1',
  providers: [
    [WorkloadProvider, '[]'],
    ':',
    someEntries(PROVIDERS_MAX, `a list of 1 to ${PROVIDERS_MAX} providers`),
  ],
})

function areRequiredClaims(claims: object): boolean {
  const entries = Object.entries(claims)
  const fit = entries.every(
    ([name, value]) => isText(name, CLAIM_NAME_LENGTH_MAX) && isText(value, CLAIM_LENGTH_MAX),
  )
  return fit && entries.length <= REQUIRED_CLAIMS_MAX
}

function isText(value: unknown, lengthMax: number): boolean {
  return typeof value === 'string' && value !== '' && value.length <= lengthMax
}

/**
 * `people` is the provider of the other file, whose ID and issuer no workload provider may have.
 * Throws SERVER_OIDC_CONFIG_INVALID, or SERVER_CONFIGURATION_INVALID for a relative path.
 */
export function readWorkloadOidcConfig(
  path: string,
  people: OidcProvider | null,
): readonly OidcProvider[] {
  if (absolutePath(path) === null) throw invalid(VARIABLE, FILE_RULES.not_absolute)
  const providers = read(path, WorkloadFile).providers.map(toProvider)
  const all = people === null ? providers : [people, ...providers]
  for (const key of ['providerId', 'issuer'] as const) {
    if (new Set(all.map((provider) => provider[key])).size === all.length) continue
    throw rejected('providers', `each ${key} once in this file and SERVICE_PLATFORM_OIDC_CONFIG`)
  }
  return providers
}

function toProvider(file: Infer<typeof WorkloadProvider>, i: number): OidcProvider {
  const { requiredClaims, ...fields } = file
  const provider = providerFrom(fields, (field, rule) => rejected(`providers[${i}].${field}`, rule))
  return { ...provider, nativeClient: null, isWorkload: true, requiredClaims }
}
