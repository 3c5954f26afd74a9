/** The shell of the page: the Environment, the navigation, and the page of the address. */
import type { ComponentType } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Capability } from '../value/capabilities.ts'
import { AuditPage } from './pages/audit.tsx'
import { BackupsPage } from './pages/backups/backups.tsx'
import { ClientsPage } from './pages/clients/clients.tsx'
import { ConfigurationPage } from './pages/configuration/configuration.tsx'
import { DataPage } from './pages/data/data.tsx'
import { DoctorPage } from './pages/doctor.tsx'
import { FilesPage } from './pages/files/files.tsx'
import { FunctionsPage } from './pages/functions/functions.tsx'
import { HttpPage } from './pages/http/http.tsx'
import { LogsPage } from './pages/logs.tsx'
import { OperatorsPage } from './pages/operators/operators.tsx'
import { OverviewPage } from './pages/overview.tsx'
import { ReleasesPage } from './pages/releases.tsx'
import { SchedulesPage } from './pages/schedules/schedules.tsx'
import { SessionsPage } from './pages/sessions/sessions.tsx'
import { FailureNote } from './parts/page.tsx'
import { QuestionDialog } from './parts/question-dialog.tsx'
import { NamedOption, Shown } from './parts/shown.tsx'
import {
  about,
  environment,
  environmentId,
  go,
  hrefOf,
  may,
  notice,
  route,
  startFailure,
} from './state.ts'

interface Entry {
  /** The name of the page in the address. */
  readonly name: string
  readonly title: string
  /** The page is offered to an operator with one of these; to everyone if it is empty. */
  readonly needs: readonly Capability[]
  /** True for a page of what a `svc dev` has not. */
  readonly isOfServer?: boolean
  readonly Content: ComponentType
}

const PAGES: readonly Entry[] = [
  {
    name: '',
    title: 'Overview',
    needs: ['environments:read', 'usage:read'],
    Content: OverviewPage,
  },
  { name: 'functions', title: 'Functions', needs: ['releases:read'], Content: FunctionsPage },
  { name: 'logs', title: 'Logs', needs: ['logs:read'], Content: LogsPage },
  { name: 'data', title: 'Data', needs: ['data:read'], Content: DataPage },
  { name: 'releases', title: 'Releases', needs: ['releases:read'], Content: ReleasesPage },
  {
    name: 'schedules',
    title: 'Schedules',
    needs: ['cron:read', 'schedules:read'],
    Content: SchedulesPage,
  },
  { name: 'files', title: 'Files', needs: ['storage:read'], Content: FilesPage },
  {
    name: 'clients',
    title: 'Clients and keys',
    needs: ['credentials:read'],
    Content: ClientsPage,
  },
  {
    name: 'configuration',
    title: 'Configuration',
    needs: ['configuration:read'],
    Content: ConfigurationPage,
  },
  { name: 'http', title: 'HTTP', needs: ['releases:read'], Content: HttpPage },
  {
    name: 'backups',
    title: 'Backups',
    needs: ['backups:manage'],
    isOfServer: true,
    Content: BackupsPage,
  },
  {
    name: 'doctor',
    title: 'Doctor',
    needs: ['environments:manage'],
    isOfServer: true,
    Content: DoctorPage,
  },
  { name: 'operators', title: 'Operators', needs: ['operators:manage'], Content: OperatorsPage },
  { name: 'sessions', title: 'Sessions', needs: [], isOfServer: true, Content: SessionsPage },
  { name: 'audit', title: 'Audit', needs: ['operators:manage'], Content: AuditPage },
]

const NOTICE_MS = 8_000

export function App() {
  if (startFailure.value !== null) {
    return (
      <main class="alone">
        <h1>svc console</h1>
        <FailureNote failure={startFailure.value} />
      </main>
    )
  }
  if (about.value === null) return <main class="alone">Loading …</main>
  return (
    <>
      <button type="button" class="skip" onClick={skip}>
        Skip to the content
      </button>
      <Header />
      <div class="columns">
        <Navigation />
        <Content />
      </div>
      <QuestionDialog />
      <Notice />
    </>
  )
}

/** The fragment of the address names the page, so no link can name the content. */
function skip(): void {
  document.getElementById('content')?.focus()
}

function Header() {
  const known = about.value!
  const choose = (event: Event): void => {
    environmentId.value = (event.currentTarget as HTMLSelectElement).value
    go(route.value.page)
  }
  return (
    <header>
      <strong class="brand">svc console</strong>
      <label>
        <span class="label">Environment</span>
        <select value={environmentId.value} onChange={choose}>
          {known.environments.map((each) => (
            <NamedOption key={each.environmentId} value={each.environmentId} name={each.name} />
          ))}
        </select>
      </label>
      <span class="who">
        <Shown text={known.operatorName} max={60} /> at <Shown text={known.managementOrigin} />,
        times in <Shown text={Intl.DateTimeFormat().resolvedOptions().timeZone} />
      </span>
    </header>
  )
}

function allowed(): readonly Entry[] {
  const isLocal = about.value?.isLocal === true
  return PAGES.filter(
    ({ needs, isOfServer }) =>
      !(isLocal && isOfServer === true) && (needs.length === 0 || needs.some(may)),
  )
}

function Navigation() {
  return (
    <nav aria-label="Pages">
      <ul>
        {allowed().map(({ name, title }) => (
          <li key={name}>
            <a href={hrefOf(name)} aria-current={route.value.page === name ? 'page' : undefined}>
              {title}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  )
}

function Content() {
  const { page } = route.value
  const entry = allowed().find(({ name }) => name === page)
  const main = useRef<HTMLElement>(null)
  const title = entry?.title ?? 'Unknown page'
  const isFirst = useRef(true)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page moves the focus.
  useEffect(() => {
    document.title = `${title} – svc console`
    if (!isFirst.current) main.current?.focus()
    isFirst.current = false
  }, [page, title])
  return (
    <main id="content" ref={main} tabIndex={-1} aria-label={title}>
      {entry === undefined || environment.value === undefined ? (
        <p>
          There is no such page, or your grants do not include it. <a href={hrefOf('')}>Overview</a>
        </p>
      ) : (
        <entry.Content key={environmentId.value} />
      )}
    </main>
  )
}

function Notice() {
  const text = notice.value
  // biome-ignore lint/correctness/useExhaustiveDependencies: each notice has its own time.
  useEffect(() => {
    if (text === '') return
    const timer = setTimeout(() => {
      notice.value = ''
    }, NOTICE_MS)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <div class="notice" role="status">
      {text !== '' && (
        <p>
          <Shown text={text} />
        </p>
      )}
    </div>
  )
}
