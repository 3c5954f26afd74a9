/** The frame of a page and its sections, failures and empty states. */
import type { ComponentChildren } from 'preact'
import { printable } from '../../client/visible-text.ts'
import type { Loaded } from '../loading.ts'
import type { Failure } from '../requests.ts'
import { hrefOf } from '../state.ts'
import { Shown } from './shown.tsx'

export function Page({
  title,
  children,
  actions,
}: {
  title: string
  children: ComponentChildren
  actions?: ComponentChildren
}) {
  return (
    <>
      <div class="page-head">
        <h1 tabIndex={-1}>{title}</h1>
        <div class="actions">{actions}</div>
      </div>
      {children}
    </>
  )
}

export function Section({
  title,
  children,
  actions,
}: {
  title: string
  children: ComponentChildren
  actions?: ComponentChildren
}) {
  return (
    <section aria-label={printable(title)}>
      <div class="section-head">
        <h2>
          <Shown text={title} />
        </h2>
        <div class="actions">{actions}</div>
      </div>
      {children}
    </section>
  )
}

/** A failure with its next step and the records of its request. */
export function FailureNote({ failure }: { failure: Failure }) {
  const { code, message, next, requestId, violations } = failure
  return (
    <div class="failure" role="alert">
      <p>
        <strong>{code}</strong> <Shown text={message} max={4_000} />
      </p>
      {violations.length > 0 && (
        <ul>
          {violations.slice(0, 20).map(({ path, rule }) => (
            <li key={`${path} ${rule}`}>
              <Shown text={`${path}: ${rule}`} max={400} />
            </li>
          ))}
        </ul>
      )}
      <p>
        <Shown text={next} max={1_000} />{' '}
        {requestId !== null && (
          <a href={hrefOf('logs', { request: requestId })}>Records of the request</a>
        )}
      </p>
    </div>
  )
}

/** Shows a loaded value, the failure to load it, or that it is being loaded. */
export function Result<T>({
  of,
  children,
}: {
  of: Loaded<T>
  children: (value: T) => ComponentChildren
}) {
  const { value, failure, isLoading } = of
  return (
    <div aria-busy={isLoading}>
      {failure !== null && <FailureNote failure={failure} />}
      {value !== null && children(value)}
      {value === null && failure === null && <p class="quiet">Loading …</p>}
    </div>
  )
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="quiet">{children}</p>
}

export function Reload({ of }: { of: readonly Pick<Loaded<unknown>, 'reload'>[] }) {
  const reload = (): void => {
    for (const each of of) each.reload()
  }
  return (
    <button type="button" onClick={reload}>
      Reload
    </button>
  )
}

export function Badge({ text }: { text: string }) {
  const tone = TONES[text] ?? 'plain'
  return <span class={`badge ${tone}`}>{text}</span>
}

const TONES: Readonly<Record<string, string>> = {
  healthy: 'good',
  ok: 'good',
  passed: 'good',
  active: 'good',
  enabled: 'good',
  complete: 'good',
  succeeded: 'good',
  validated: 'good',
  serving: 'good',
  degraded: 'warn',
  warning: 'warn',
  warn: 'warn',
  running: 'warn',
  pending: 'warn',
  published: 'warn',
  disabled: 'warn',
  denied: 'warn',
  unavailable: 'bad',
  failed: 'bad',
  error: 'bad',
  rejected: 'bad',
  revoked: 'bad',
  dead: 'bad',
}
