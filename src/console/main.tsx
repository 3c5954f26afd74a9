/** The page of `svc console`. */
import { render } from 'preact'
import { App } from './app.tsx'
import { start } from './state.ts'

render(<App />, document.getElementById('console')!)
void start()
