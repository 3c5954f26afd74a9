/** The peppers that a backup of a server has if the settings ask for them. */
import type { BackedUpPeppers } from '../../backups/base/base-records.ts'
import type { ServerSettings } from '../../settings/settings.ts'

export type PepperSettings = Pick<ServerSettings, 'identityPepper' | 'oidc' | 'workloads'>

export function peppersOf({ identityPepper, oidc, workloads }: PepperSettings): BackedUpPeppers {
  return { identity: identityPepper, subjects: oidc === null ? workloads : [oidc, ...workloads] }
}
