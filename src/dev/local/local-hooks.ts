/** The mount of `svc dev`: all routes of http.ts are reachable at once, and their URLs reported. */
import type { DevelopmentEvent } from '../../client/development/events.ts'
import type { RecordedActor } from '../../identity/actor.ts'
import { changeMount, type MountPorts, readMounts } from '../../product/http-mounts/mounts.ts'
import type { LoadedRelease } from '../../product/ports.ts'
import { LOCAL_MOUNT, mountPath } from '../../value/http/mounts.ts'

type HooksEvent = Extract<DevelopmentEvent, { event: 'hooks' }>

export interface LocalHooksOptions {
  readonly ports: MountPorts
  readonly author: RecordedActor
  /** The target that `svc dev` serves. */
  readonly target: string
  /** Origin of the application API. */
  readonly url: string
  readonly report: (event: DevelopmentEvent) => void
}

export class LocalHooks {
  readonly #options: LocalHooksOptions
  /** JSON text of the hooks of the last report. */
  #reported = '[]'

  /** Makes the mount, or changes that of an earlier start with another address. */
  constructor(options: LocalHooksOptions) {
    this.#options = options
    const { ports, author, target, url } = options
    const known = readMounts(ports).find(({ name }) => name === LOCAL_MOUNT)?.configuration
    if (known?.target === target && known.publicUrl === url && !known.pathToken) return
    const { system } = ports
    changeMount(ports, author, {
      operationId: system.ids.make('opn'),
      name: LOCAL_MOUNT,
      configuration: { target, publicUrl: url, pathToken: false },
      expectedRevision: null,
      changedAtMicros: system.nowMicros(),
      requestId: system.ids.make('req'),
    })
  }

  /** Reports the hooks of the served Release if they differ from those of the last report. */
  follow({ manifest }: Pick<LoadedRelease, 'manifest'>): void {
    const { url, report } = this.#options
    const hooks = (manifest.http ?? []).map((route): HooksEvent['hooks'][number] => ({
      name: route.name,
      methods: [...route.methods],
      url: `${url}${mountPath(LOCAL_MOUNT)}${route.path === '/' ? '' : route.path}`,
      function: route.function,
      verify: route.kind === 'endpoint' ? null : (route.verify?.scheme ?? null),
    }))
    const text = JSON.stringify(hooks)
    if (text === this.#reported) return
    this.#reported = text
    report({ event: 'hooks', hooks })
  }
}
