/** The state that all pages share: the Environment, the address of the page, and the question. */
import { computed, signal } from '@preact/signals'
import type { Capability } from '../value/capabilities.ts'
import { type About, Failure, failureOf, readAbout } from './requests.ts'

export const about = signal<About | null>(null)
/** The failure of the start; null without one. */
export const startFailure = signal<Failure | null>(null)
export const environmentId = signal('')

export const environment = computed(() =>
  about.value?.environments.find((each) => each.environmentId === environmentId.value),
)

/** Returns whether the operator has a capability at the shown Environment. */
export function may(capability: Capability): boolean {
  if (capability === 'operators:manage') return about.value?.administersOperators === true
  return environment.value?.capabilities.includes(capability) === true
}

/** A page and its parameters, which are the fragment of the address. */
export interface Route {
  readonly page: string
  readonly parameters: URLSearchParams
}

export const route = signal<Route>(routeOf(location.hash))

function routeOf(hash: string): Route {
  const [page = '', query = ''] = hash.replace(/^#\/?/, '').split('?')
  return { page, parameters: new URLSearchParams(query) }
}

/** Returns the address of a page with those parameters that have a value. */
export function hrefOf(page: string, parameters: Readonly<Record<string, string | null>> = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== '')
  const query = new URLSearchParams(given as [string, string][])
  return query.size === 0 ? `#/${page}` : `#/${page}?${query}`
}

export function go(page: string, parameters: Readonly<Record<string, string | null>> = {}): void {
  location.hash = hrefOf(page, parameters)
}

export async function start(): Promise<void> {
  addEventListener('hashchange', () => {
    route.value = routeOf(location.hash)
  })
  try {
    const known = await readAbout()
    about.value = known
    environmentId.value = known.environmentId
  } catch (error) {
    startFailure.value = failureOf(error)
  }
}

/** An act that the person must confirm, since it changes what others see or destroys it. */
export interface Question {
  readonly title: string
  /** The things that the act destroys or changes, by name, a paragraph each. */
  readonly effects: readonly string[]
  /** The `svc` command that would do the same. */
  readonly command: string
  /** The label of the button that does it. */
  readonly label: string
  readonly act: () => Promise<unknown>
  /** True if the page itself shows the outcome of the act, so that no notice does. */
  readonly isShownByPage?: boolean
  /** Called after the act, to show its effect. */
  readonly done: () => void
}

export const question = signal<Question | null>(null)

/** Announced by screen readers and shown for a time. */
export const notice = signal('')

export function ask(asked: Question): void {
  question.value = asked
}

/** Adds the options that name the Environment of the page to a command. */
export function svcCommand(text: string): string {
  const known = about.value
  const isFirst = known?.environmentId === environmentId.value
  const options = isFirst ? (known?.commandOptions ?? '') : '--root DIR'
  return options === '' ? `svc ${text}` : `svc ${text} ${options}`
}

export { Failure }
