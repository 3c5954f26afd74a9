/**
 * Settings of the contract whose feature this version does not have. They are checked like all
 * others and then refused: a setting that is silently ignored is worse than one that fails.
 */
import type { ServerConfiguration } from './configuration.ts'
import { invalid } from './sources.ts'
import type { VariableName } from './variables.ts'

/** Throws SERVER_CONFIGURATION_INVALID. */
export function refuseUnsupported({ product }: ServerConfiguration): void {
  const refused: [VariableName, unknown][] = [
    ['SERVICE_PLATFORM_DATABASE_URL', product?.database ?? null],
    ['SERVICE_PRODUCT_AUTH_CONFIG', product?.authConfigPath ?? null],
  ]
  for (const [name, setting] of refused) {
    if (setting !== null) throw invalid(name, 'unset: this version does not support it')
  }
}
