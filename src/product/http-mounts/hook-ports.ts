/** The parts of an Environment that requests of other services need. */
import type { Inbox } from '../../engine/inbox/inbox.ts'
import type { Secret } from '../../value/secret.ts'
import type { LiveConfiguration } from '../configuration/live-configuration.ts'
import type { RootPort } from '../ports.ts'
import { type EventIds, type EventName, eventIds } from './event-ids.ts'
import type { MountDirectory } from './mount-directory.ts'

export interface HookPorts {
  readonly mounts: Pick<MountDirectory, 'find' | 'isToken'>
  readonly inbox: Pick<Inbox, 'eventOf' | 'accept' | 'endOf'>
  /** Returns a secret of the Environment; null if there is none. */
  secret(name: string): Secret | null
  eventIds(name: EventName): EventIds
}

interface HookParts extends RootPort {
  readonly httpMounts: MountDirectory
  readonly configuration: Pick<LiveConfiguration, 'current'>
}

export function hookPorts(
  { httpMounts, configuration, root }: HookParts,
  { inbox }: Pick<HookPorts, 'inbox'>,
): HookPorts {
  return {
    mounts: httpMounts,
    inbox,
    secret: (name) => configuration.current.secret(name),
    eventIds: (name) => eventIds(root.keyring, name),
  }
}
