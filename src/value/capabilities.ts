/**
 * Capabilities and the roles that grant them (contract/management.md, Roles and capabilities;
 * contract/wire.md, Capabilities of the roles). Authorization checks capabilities and scope, never
 * the name of a role.
 */

/** All capabilities, sorted. */
export const CAPABILITIES = [
  'backups:manage',
  'channels:promote',
  'configuration:manage',
  'configuration:read',
  'credentials:manage',
  'credentials:read',
  'cron:activate',
  'cron:read',
  'data:read',
  'data:write',
  'environments:manage',
  'environments:read',
  'functions:invoke',
  'logs:follow',
  'logs:prune',
  'logs:read',
  'operators:manage',
  'releases:publish',
  'releases:read',
  'schedules:read',
  'storage:manage',
  'storage:read',
  'usage:read',
] as const
export type Capability = (typeof CAPABILITIES)[number]

/** Capabilities whose changes the next save of a Workspace would undo in `svc dev`. */
const OF_FILES: readonly Capability[] = [
  'channels:promote',
  'configuration:manage',
  'environments:manage',
  'releases:publish',
]

/** The capabilities of the author at `svc dev`, which has no operators to manage. */
export const LOCAL_CAPABILITIES: readonly Capability[] = CAPABILITIES.filter(
  (capability) => capability !== 'operators:manage' && !OF_FILES.includes(capability),
)

export const ROLES = ['owner', 'operator', 'developer', 'observer'] as const
export type Role = (typeof ROLES)[number]

const DEVELOPER: readonly Capability[] = [
  'environments:read',
  'releases:read',
  'releases:publish',
  'channels:promote',
  'functions:invoke',
  'configuration:read',
  'data:read',
  'data:write',
  'credentials:read',
  'storage:read',
  'cron:read',
  'schedules:read',
  'logs:read',
  'logs:follow',
]
const OBSERVER: readonly Capability[] = [
  'environments:read',
  'releases:read',
  'configuration:read',
  'data:read',
  'credentials:read',
  'storage:read',
  'cron:read',
  'schedules:read',
  'logs:read',
  'usage:read',
]

/** Returns the capabilities of a role, sorted and without duplicates. */
export function capabilitiesOfRole(role: Role): readonly Capability[] {
  switch (role) {
    case 'owner':
      return CAPABILITIES
    case 'operator':
      return CAPABILITIES.filter((capability) => capability !== 'operators:manage')
    case 'developer':
      return DEVELOPER.toSorted()
    case 'observer':
      return OBSERVER.toSorted()
  }
}

/** Returns the role with exactly these capabilities, which are sorted; null if there is none. */
export function roleWith(capabilities: readonly Capability[]): Role | null {
  const text = capabilities.join(' ')
  return ROLES.find((role) => capabilitiesOfRole(role).join(' ') === text) ?? null
}

/**
 * Purposes of derived sessions: the page of an operator, an agent, or a job of a pipeline. Audit
 * records of what a session does name its purpose.
 */
export const SESSION_PURPOSES = ['console', 'mcp', 'job'] as const
export type SessionPurpose = (typeof SESSION_PURPOSES)[number]

/** @limit Identity and keys: lifetime of a derived session */
export const DERIVED_SECONDS_MAX = 3_600

export function isCapability(text: string): text is Capability {
  return (CAPABILITIES as readonly string[]).includes(text)
}

export function isRole(text: string): text is Role {
  return (ROLES as readonly string[]).includes(text)
}
