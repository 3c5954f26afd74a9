/** Reads the address and the key of the backend. */

export interface Settings {
  readonly url: string
  readonly applicationKey: string
  readonly target: string
}

/** `svc dev` writes this file for this machine alone, and git ignores it. */
const local = import.meta.env.DEV
  ? import.meta.glob<Settings>('../_generated/dev.json', { eager: true, import: 'default' })
  : {}

/** The settings of `npm run build`, which come from its environment. */
const { VITE_SVC_URL, VITE_SVC_KEY, VITE_SVC_TARGET } = import.meta.env
const built = { url: VITE_SVC_URL, applicationKey: VITE_SVC_KEY, target: VITE_SVC_TARGET }

/** Null until `svc dev` has served this Workspace once. */
export const settings: Settings | null =
  Object.values(local)[0] ??
  (VITE_SVC_URL ? { ...built, target: VITE_SVC_TARGET ?? 'channel:production' } : null)
