/** Capabilities of the session of an agent: the usual ones, and those that a person can add. */
import { CAPABILITIES, type Capability } from '../../value/capabilities.ts'

/** Capabilities without a permission, which read everything but documents. */
export const AGENT_CAPABILITIES: readonly Capability[] = CAPABILITIES.filter(
  (capability) => capability.endsWith(':read') && capability !== 'data:read',
)

/**
 * Capabilities that no agent gets: with operators:manage it could give rights to others, and
 * logs:follow opens a stream, for which there is no tool.
 */
const NEVER: readonly Capability[] = ['logs:follow', 'operators:manage']

/** Capabilities that a permission can add. */
export const ALLOWABLE: readonly Capability[] = CAPABILITIES.filter(
  (capability) => !AGENT_CAPABILITIES.includes(capability) && !NEVER.includes(capability),
)

export function isAllowable(text: string): text is Capability {
  return (ALLOWABLE as readonly string[]).includes(text)
}
