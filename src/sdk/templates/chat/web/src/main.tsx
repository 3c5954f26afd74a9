import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { createClient, indexedDbStore } from 'svc/client'
import { SvcProvider } from 'svc/react'
import { App } from './app'
import { settings } from './settings'
import './style.css'

const root = createRoot(document.querySelector('#root')!)
if (settings === null) {
  root.render(
    <p className="notice">
      There is no backend yet. Start <code>svc dev</code>, and this page continues.
    </p>,
  )
} else {
  // A pending message is sent again after a reload. It takes effect only once.
  const client = createClient({ ...settings, store: indexedDbStore('chat') })
  root.render(
    <StrictMode>
      <SvcProvider client={client}>
        <App />
      </SvcProvider>
    </StrictMode>,
  )
}
