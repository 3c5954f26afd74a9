/** The identity providers of operators: the one of people, and those of workloads. */
import type { Secret } from '../value/secret.ts'
import { type OidcProvider, readOidcConfig } from './oidc.ts'
import { fault, type ProcessEnvironment, readPlain } from './sources.ts'
import type { PlainName } from './variables.ts'
import { readWorkloadOidcConfig } from './workload-oidc.ts'

const PEOPLE: PlainName = 'SERVICE_PLATFORM_OIDC_CONFIG'
const WORKLOADS: PlainName = 'SERVICE_PLATFORM_WORKLOAD_OIDC_CONFIG'

export interface IdentityProviders {
  readonly oidc: OidcProvider | null
  readonly workloads: readonly OidcProvider[]
}

/** Throws SERVER_OIDC_CONFIG_INVALID and SERVER_CONFIGURATION_INVALID. */
export function readIdentityProviders(
  environment: ProcessEnvironment,
  identityPepper: Secret,
): IdentityProviders {
  const path = readPlain(environment, PEOPLE)
  const oidc = path === null ? null : readOidcConfig(path)
  if (oidc !== null) requireOwnPepper(oidc, identityPepper, PEOPLE, 'subjectPepper')
  const workloadPath = readPlain(environment, WORKLOADS)
  const workloads = workloadPath === null ? [] : readWorkloadOidcConfig(workloadPath, oidc)
  for (const [i, provider] of workloads.entries()) {
    requireOwnPepper(provider, identityPepper, WORKLOADS, `providers[${i}].subjectPepper`)
  }
  return { oidc, workloads }
}

/** Rejects a shared pepper: rotating credentials would then also void all identity links. */
function requireOwnPepper(
  { subjectPepper }: OidcProvider,
  identityPepper: Secret,
  name: PlainName,
  field: string,
): void {
  if (subjectPepper.reveal() !== identityPepper.reveal()) return
  const rule = `${field}: independent of the identity pepper`
  throw fault('SERVER_OIDC_CONFIG_INVALID', name, rule)
}
